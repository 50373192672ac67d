/** One setting, by its kind. */

import type { Widget } from "../protocol";
import type { SettingValue } from "../state/chat";
import { Choices } from "./Choices";
import { DateControl } from "./DateControl";
import { NumberControl, SliderControl } from "./NumberControl";
import { TagsControl } from "./TagsControl";
import { TextControl } from "./TextControl";

interface Props {
  readonly widget: Widget;
  readonly value: SettingValue;
  readonly onChange: (value: SettingValue) => void;
}

export function WidgetView({ widget, value, onChange }: Props) {
  const isToggle = widget.kind === "switch" || widget.kind === "checkbox";
  return (
    <div class={isToggle ? "widget toggle" : "widget"} title={widget.tooltip}>
      <label class="widget-label" for={`setting-${widget.id}`}>
        {widget.label}
      </label>
      <Control widget={widget} value={value} onChange={onChange} />
      {widget.description !== "" && <small>{widget.description}</small>}
    </div>
  );
}

function Control({ widget, value, onChange }: Props) {
  switch (widget.kind) {
    case "switch":
    case "checkbox":
      return (
        <input
          id={`setting-${widget.id}`}
          type="checkbox"
          class={widget.kind}
          role={widget.kind === "switch" ? "switch" : undefined}
          checked={value === true}
          disabled={widget.is_disabled}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      );
    case "slider":
      return (
        <SliderControl widget={widget} value={typeof value === "number" ? value : widget.initial} onChange={onChange} />
      );
    case "number":
      return <NumberControl widget={widget} value={typeof value === "number" ? value : null} onChange={onChange} />;
    case "select":
    case "radio":
    case "multi_select":
      return <Choices widget={widget} value={value} onChange={onChange} />;
    case "text":
      return <TextControl widget={widget} value={typeof value === "string" ? value : ""} onChange={onChange} />;
    case "tags":
      return <TagsControl widget={widget} value={Array.isArray(value) ? value : []} onChange={onChange} />;
    case "date":
      return <DateControl widget={widget} value={value} onChange={onChange} />;
  }
}
