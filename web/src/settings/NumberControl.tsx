/** Numbers: within bounds with a slider, or any with a field. */

import type { NumberWidget, SliderWidget } from "../protocol";

interface Props<W, V> {
  readonly widget: W;
  readonly value: V;
  readonly onChange: (value: number | null) => void;
}

export function SliderControl({ widget, value, onChange }: Props<SliderWidget, number>) {
  return (
    <span class="slider">
      <input
        id={`setting-${widget.id}`}
        type="range"
        min={widget.min}
        max={widget.max}
        step={widget.step}
        value={value}
        disabled={widget.is_disabled}
        onInput={(event) => onChange(event.currentTarget.valueAsNumber)}
      />
      <output for={`setting-${widget.id}`}>{value}</output>
    </span>
  );
}

export function NumberControl({ widget, value, onChange }: Props<NumberWidget, number | null>) {
  return (
    <input
      id={`setting-${widget.id}`}
      class="line-field"
      type="number"
      step="any"
      value={value ?? ""}
      placeholder={widget.placeholder}
      disabled={widget.is_disabled}
      onInput={({ currentTarget: { valueAsNumber } }) => onChange(Number.isNaN(valueAsNumber) ? null : valueAsNumber)}
    />
  );
}
