/** Opens the browser's window for choosing files; and takes those that are dropped on the conversation. */

import { useEffect, useRef } from "preact/hooks";
import { FILES_DROPPED } from "../chat/file_drop";
import { Icon } from "../parts/Icon";
import { words } from "../words/words";
import type { Uploads } from "./uploads";

export function AttachButton({ uploads, accept }: { readonly uploads: Uploads; readonly accept: readonly string[] }) {
  const input = useRef<HTMLInputElement>(null);
  const chosen = (): void => {
    if (input.current === null) return;
    uploads.add([...(input.current.files ?? [])]);
    input.current.value = ""; // so that the same file can be chosen again
  };
  useEffect(() => {
    const dropped = (event: Event): void => {
      if (event instanceof CustomEvent) uploads.add(event.detail as File[]);
    };
    addEventListener(FILES_DROPPED, dropped);
    return () => removeEventListener(FILES_DROPPED, dropped);
  });
  return (
    <>
      <input ref={input} type="file" multiple hidden accept={accept.join(",")} onChange={chosen} />
      <button
        type="button"
        class="quiet round"
        title={words.attach}
        aria-label={words.attach}
        onClick={() => input.current?.click()}
      >
        <Icon name="clip" />
      </button>
    </>
  );
}
