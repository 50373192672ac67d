/** A question that is answered by filling in an element's properties. */

import { useState } from "preact/hooks";
import { useClient, usePage } from "../client";
import { LineField } from "../composer/LineField";
import type { Ask } from "../protocol";
import { words } from "../words/words";

type Values = Readonly<Record<string, unknown>>;

export function AskElement({ ask }: { readonly ask: Ask }) {
  const client = useClient();
  const element = usePage((page) => page.current.elements.get(ask.element_id ?? ""));
  const [changed, setChanged] = useState<Values>({});
  if (element === undefined) return null;
  const values: Values = { ...element.props, ...changed };
  const set = (key: string, value: unknown): void => setChanged({ ...changed, [key]: value });
  return (
    <div class="ask-element" role="form" aria-label={element.name}>
      {Object.entries(values).map(([key, value]) => (
        <label key={key}>
          <span>{key.replaceAll("_", " ")}</span>
          <Value name={key} value={value} onChange={(next) => set(key, next)} />
        </label>
      ))}
      <button type="button" class="primary" onClick={() => client.answer(ask.id, { values: { ...values } })}>
        {words.submit}
      </button>
    </div>
  );
}

interface ValueProps {
  readonly name: string;
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
}

/** The control that fits a value as it was given: what is neither yes or no, a number nor text, only shown. */
function Value({ name, value, onChange }: ValueProps) {
  if (typeof value === "boolean") {
    return <input type="checkbox" checked={value} onChange={(event) => onChange(event.currentTarget.checked)} />;
  }
  if (typeof value === "number") {
    return (
      <input
        class="line-field"
        type="number"
        value={value}
        onInput={(event) => onChange(event.currentTarget.valueAsNumber)}
      />
    );
  }
  if (typeof value === "string" || value == null) {
    return <LineField value={value ?? ""} label={name} onInput={onChange} />;
  }
  return <code>{JSON.stringify(value)}</code>;
}
