/** What a model thought before it answered: folded, unless somebody wants to see it. */

import { useState } from "preact/hooks";
import { Markdown } from "../markdown/Markdown";
import { Icon } from "../parts/Icon";
import type { ReasoningPart } from "../protocol";
import { duration, words } from "../words/words";

export function Reasoning({ part, isGrowing }: { readonly part: ReasoningPart; readonly isGrowing: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const thinks = part.ended_at === null && isGrowing;
  const seconds = part.ended_at === null ? 0 : part.ended_at - part.started_at;
  return (
    <section class="fold reasoning" data-open={isOpen}>
      <button type="button" class="fold-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="chevron" size={14} />
        <span class={thinks ? "pulse" : ""}>{thinks ? words.thinking : words.thought(duration(seconds))}</span>
      </button>
      {isOpen && (
        <div class="fold-body">
          <Markdown text={part.text} isGrowing={thinks} />
        </div>
      )}
    </section>
  );
}
