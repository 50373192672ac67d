/** An input of one line whose Enter, too, never answers for an input method. */

import { useRef } from "preact/hooks";
import { SendKey } from "./send_key";

interface Props {
  readonly value: string;
  readonly label: string;
  readonly placeholder?: string;
  readonly hasFocus?: boolean;
  readonly onInput: (value: string) => void;
  readonly onEnter?: () => void;
  readonly onEscape?: () => void;
  readonly onBlur?: () => void;
}

export function LineField({ value, label, placeholder = "", hasFocus = false, ...on }: Props) {
  const keys = useRef(new SendKey()).current;
  const keyDown = (event: KeyboardEvent): void => {
    if (keys.sends(event)) {
      event.preventDefault();
      on.onEnter?.();
    } else if (event.key === "Escape" && keys.isForPage(event)) {
      event.stopPropagation();
      on.onEscape?.();
    }
  };
  return (
    <input
      class="line-field"
      type="text"
      value={value}
      aria-label={label}
      placeholder={placeholder}
      autocomplete="off"
      dir="auto"
      ref={(input) => {
        if (hasFocus && input !== null && document.activeElement !== input && !input.dataset["seen"]) {
          input.dataset["seen"] = "1";
          input.focus();
          input.select();
        }
      }}
      onInput={(event) => on.onInput(event.currentTarget.value)}
      onKeyDown={keyDown}
      onCompositionStart={keys.compositionStarted}
      onCompositionEnd={keys.compositionEnded}
      onBlur={() => on.onBlur?.()}
    />
  );
}
