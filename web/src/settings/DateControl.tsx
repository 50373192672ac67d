/** A day, or the first and the last of several. */

import { useState } from "preact/hooks";
import type { DateWidget } from "../protocol";
import type { SettingValue } from "../state/chat";
import { words } from "../words/words";

interface Props {
  readonly widget: DateWidget;
  readonly value: SettingValue;
  readonly onChange: (value: SettingValue) => void;
}

export function DateControl({ widget, value, onChange }: Props) {
  // A range is told once both of its days are chosen.
  const [days, setDays] = useState(Array.isArray(value) ? value : [typeof value === "string" ? value : "", ""]);
  const field = (index: 0 | 1, label: string) => (
    <input
      id={index === 0 ? `setting-${widget.id}` : undefined}
      class="line-field"
      type="date"
      aria-label={label}
      value={days[index] ?? ""}
      min={widget.min_date ?? undefined}
      max={widget.max_date ?? undefined}
      disabled={widget.is_disabled}
      onInput={({ currentTarget: { value: day } }) => {
        const next = index === 0 ? [day, days[1] ?? ""] : [days[0] ?? "", day];
        setDays(next);
        if (!widget.is_range) onChange(day || null);
        else if (next.every(Boolean) || !next.some(Boolean)) onChange(day ? next : null);
      }}
    />
  );
  if (!widget.is_range) return field(0, widget.label);
  return (
    <span class="date-range">
      {field(0, words.from)} – {field(1, words.until)}
    </span>
  );
}
