/** A text field that grows with its text, and in which Enter never sends what an input method still converts. */

import { useLayoutEffect, useRef } from "preact/hooks";
import { SendKey } from "./send_key";

interface Props {
  readonly value: string;
  readonly placeholder: string;
  readonly label: string;
  readonly hasFocus?: boolean;
  readonly rows?: number;
  readonly onInput: (value: string) => void;
  readonly onSend: () => void;
  /** Sees keys before the field does, except those of an input method; true means that the key is dealt with. */
  readonly onKey?: (event: KeyboardEvent) => boolean;
  readonly onPasteFiles?: (files: File[]) => void;
  /** A field is no place for a book: what is longer than `LONG_CHARS` is handed over here instead. */
  readonly onPasteLong?: (text: string) => void;
}

const LONG_CHARS = 20_000;

export function Field({
  value,
  placeholder,
  label,
  hasFocus = false,
  rows = 1,
  onInput,
  onSend,
  onKey,
  onPasteFiles,
  onPasteLong,
}: Props) {
  const field = useRef<HTMLTextAreaElement>(null);
  const keys = useRef(new SendKey()).current;

  useLayoutEffect(() => {
    const area = field.current;
    if (area === null) return;
    area.style.height = "auto";
    // A long text fills the field anyway, and measuring it would lay all of it out once more.
    area.style.height = value.length > LONG_CHARS ? "40vh" : `${area.scrollHeight}px`;
  }, [value]);

  useLayoutEffect(() => {
    // On a phone a focused field would push the page up with its keyboard before anybody asked for it.
    if (hasFocus && !matchMedia("(pointer: coarse)").matches) field.current?.focus({ preventScroll: true });
  }, [hasFocus]);

  const keyDown = (event: KeyboardEvent): void => {
    if (!keys.isForPage(event)) return;
    if (onKey?.(event) === true) return event.preventDefault();
    if (!keys.sends(event)) return;
    event.preventDefault();
    onSend();
  };

  const paste = (event: ClipboardEvent): void => {
    const files = [...(event.clipboardData?.files ?? [])];
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (files.length > 0 && onPasteFiles !== undefined) onPasteFiles(files);
    else if (text.length > LONG_CHARS && onPasteLong !== undefined) onPasteLong(text);
    else return;
    event.preventDefault();
  };

  return (
    <textarea
      ref={field}
      class="field"
      rows={rows}
      value={value}
      placeholder={placeholder}
      aria-label={label}
      dir="auto"
      enterkeyhint="send"
      onInput={(event) => onInput(event.currentTarget.value)}
      onKeyDown={keyDown}
      onCompositionStart={keys.compositionStarted}
      onCompositionEnd={keys.compositionEnded}
      onPaste={paste}
    />
  );
}
