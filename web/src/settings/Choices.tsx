/** One of several, or some of several. */

import type { MultiSelectWidget, RadioWidget, SelectWidget } from "../protocol";
import type { SettingValue } from "../state/chat";
import { words } from "../words/words";

interface Props {
  readonly widget: SelectWidget | RadioWidget | MultiSelectWidget;
  readonly value: SettingValue;
  readonly onChange: (value: SettingValue) => void;
}

export function Choices({ widget, value, onChange }: Props) {
  if (widget.kind === "select") {
    return (
      <select
        id={`setting-${widget.id}`}
        value={typeof value === "string" ? value : ""}
        disabled={widget.is_disabled}
        onChange={(event) => onChange(event.currentTarget.value || null)}
      >
        {widget.initial === null && <option value="">{words.none}</option>}
        {widget.choices.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
      </select>
    );
  }
  const chosen = Array.isArray(value) ? value : typeof value === "string" ? [value] : [];
  const isMany = widget.kind === "multi_select";
  const toggle = (one: string): void => {
    if (!isMany) onChange(one);
    else onChange(chosen.includes(one) ? chosen.filter((other) => other !== one) : [...chosen, one]);
  };
  return (
    <span class="choices" role={isMany ? "group" : "radiogroup"} aria-label={widget.label}>
      {widget.choices.map((choice) => (
        <label key={choice.value}>
          <input
            type={isMany ? "checkbox" : "radio"}
            name={`setting-${widget.id}`}
            checked={chosen.includes(choice.value)}
            disabled={widget.is_disabled}
            onChange={() => toggle(choice.value)}
          />
          {choice.label}
        </label>
      ))}
    </span>
  );
}
