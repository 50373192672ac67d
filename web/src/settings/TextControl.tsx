/** Text of one line, or of several. */

import type { TextWidget } from "../protocol";

interface Props {
  readonly widget: TextWidget;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export function TextControl({ widget, value, onChange }: Props) {
  const { id, placeholder, is_disabled } = widget;
  if (widget.is_multiline) {
    return (
      <textarea
        id={`setting-${id}`}
        rows={4}
        value={value}
        placeholder={placeholder}
        disabled={is_disabled}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  return (
    <input
      id={`setting-${id}`}
      class="line-field"
      type="text"
      value={value}
      placeholder={placeholder}
      disabled={is_disabled}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}
