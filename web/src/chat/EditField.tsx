/** An earlier message, in a field again. */

import { useState } from "preact/hooks";
import { Field } from "../composer/Field";
import { words } from "../words/words";

interface Props {
  readonly text: string;
  readonly onSave: (text: string) => void;
  readonly onCancel: () => void;
}

export function EditField({ text, onSave, onCancel }: Props) {
  const [value, setValue] = useState(text);
  const save = (): void => {
    if (value.trim() !== "") onSave(value);
  };
  const key = (event: KeyboardEvent): boolean => {
    if (event.key === "Escape") onCancel();
    return event.key === "Escape";
  };
  return (
    <div class="edit-field">
      <Field value={value} label={words.edit} placeholder="" hasFocus onInput={setValue} onSend={save} onKey={key} />
      <div class="edit-row">
        <small>{words.editHint}</small>
        <button type="button" class="chip" onClick={onCancel}>
          {words.cancel}
        </button>
        <button type="button" class="primary" onClick={save}>
          {words.send}
        </button>
      </div>
    </div>
  );
}
