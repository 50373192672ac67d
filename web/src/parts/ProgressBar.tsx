/** How far something is: in numbers where they are known, and otherwise only that it goes on. */

import type { Progress } from "../protocol";
import { bytes } from "../words/words";

export function ProgressBar({ progress }: { readonly progress: Progress }) {
  const { stage, done, total, unit } = progress;
  const share = total > 0 ? Math.min(1, done / total) : null;
  return (
    <div class="progress">
      <progress {...(share !== null && { value: share })} max={1} aria-label={stage} />
      <span>
        {stage}
        {total > 0 && ` ${amount(done, unit)} / ${amount(total, unit)}`}
      </span>
      {share !== null && <span class="percent">{Math.floor(share * 100)} %</span>}
    </div>
  );
}

function amount(count: number, unit: string): string {
  if (/^(?:b|bytes?)$/i.test(unit)) return bytes(count);
  return `${count.toLocaleString(undefined, { maximumFractionDigits: 1 })}${unit && ` ${unit}`}`;
}
