/** Words that a person adds and takes away. */

import { useState } from "preact/hooks";
import { LineField } from "../composer/LineField";
import { Icon } from "../parts/Icon";
import type { TagsWidget } from "../protocol";
import { words } from "../words/words";

interface Props {
  readonly widget: TagsWidget;
  readonly value: readonly string[];
  readonly onChange: (value: string[]) => void;
}

export function TagsControl({ widget, value, onChange }: Props) {
  const [text, setText] = useState("");
  const add = (): void => {
    const tag = text.trim();
    if (tag !== "" && !value.includes(tag)) onChange([...value, tag]);
    setText("");
  };
  return (
    <span class="tags">
      {value.map((tag) => (
        <span key={tag} class="chip">
          {tag}
          <button
            type="button"
            class="quiet"
            aria-label={words.removeFile(tag)}
            disabled={widget.is_disabled}
            onClick={() => onChange(value.filter((other) => other !== tag))}
          >
            <Icon name="cross" size={12} />
          </button>
        </span>
      ))}
      {!widget.is_disabled && (
        <LineField
          value={text}
          label={widget.label}
          placeholder={words.addTag}
          onInput={setText}
          onEnter={add}
          onBlur={add}
        />
      )}
    </span>
  );
}
