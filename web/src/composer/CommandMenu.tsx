/** The commands that fit what was typed behind a slash. */

import type { SlashCommand } from "../protocol";
import { NamedIcon } from "../parts/Icon";
import { words } from "../words/words";

interface Props {
  readonly commands: readonly SlashCommand[];
  readonly active: number;
  readonly onChoose: (command: SlashCommand) => void;
}

export function CommandMenu({ commands, active, onChoose }: Props) {
  return (
    <ul class="command-menu" role="listbox" aria-label={words.commands}>
      {commands.map((command, i) => (
        <li key={command.id} role="option" aria-selected={i === active}>
          <button
            type="button"
            tabIndex={-1}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => onChoose(command)}
          >
            <NamedIcon name={command.icon} label="" />
            <strong>/{command.id}</strong>
            <span>{command.description}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The commands for what stands in the field: those that begin with what follows its slash. */
export function fitting(commands: readonly SlashCommand[], text: string): readonly SlashCommand[] {
  const typed = /^\/(\S*)$/.exec(text)?.[1]?.toLowerCase();
  if (typed === undefined) return [];
  return commands.filter(({ id }) => id.toLowerCase().startsWith(typed));
}
