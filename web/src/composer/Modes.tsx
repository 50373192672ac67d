/** The choices that go along with every message. */

import type { Mode } from "../protocol";

interface Props {
  readonly modes: readonly Mode[];
  readonly values: Readonly<Record<string, string>>;
  readonly onChange: (mode: string, option: string) => void;
}

export function Modes({ modes, values, onChange }: Props) {
  return (
    <>
      {modes.map((mode) => (
        <label key={mode.id} class="mode" title={mode.name}>
          <span class="visually-hidden">{mode.name}</span>
          <select value={valueOf(mode, values)} onChange={(event) => onChange(mode.id, event.currentTarget.value)}>
            {mode.options.map((option) => (
              <option key={option.id} value={option.id} title={option.description}>
                {option.name}
              </option>
            ))}
          </select>
        </label>
      ))}
    </>
  );
}

export function valueOf(mode: Mode, values: Readonly<Record<string, string>>): string {
  const fallback = mode.options.find((option) => option.is_default) ?? mode.options[0];
  return values[mode.id] ?? fallback?.id ?? "";
}
