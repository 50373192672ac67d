/** Long texts that were pasted: each one thing that goes along with the message, and not a field full of it. */

import { Icon } from "../parts/Icon";
import { words } from "../words/words";

interface Props {
  readonly texts: readonly string[];
  readonly onRemove: (index: number) => void;
}

export function LongTexts({ texts, onRemove }: Props) {
  if (texts.length === 0) return null;
  return (
    <ul class="attachments">
      {texts.map((text, i) => (
        <li key={i} class="chip long-text" title={text.slice(0, 500)}>
          <Icon name="file" size={16} />
          <span class="ellipsis">{words.pasted(text.length)}</span>
          <button
            type="button"
            class="quiet"
            aria-label={words.removeFile(words.pasted(text.length))}
            onClick={() => onRemove(i)}
          >
            <Icon name="cross" size={14} />
          </button>
        </li>
      ))}
    </ul>
  );
}
