/** A question that is answered with files. */

import { useRef, useState } from "preact/hooks";
import { useClient } from "../client";
import { Attachments } from "../composer/Attachments";
import { useUploads } from "../composer/uploads";
import { Icon } from "../parts/Icon";
import type { Ask } from "../protocol";
import { words } from "../words/words";

export function AskFiles({ ask }: { readonly ask: Ask }) {
  const client = useClient();
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const uploads = useUploads({
    maxBytes: ask.max_bytes > 0 ? ask.max_bytes : Number.POSITIVE_INFINITY,
    maxFiles: ask.max_files,
    accept: ask.accept,
  });
  const isReady = uploads.list.length > 0 && !uploads.isBusy;
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    event.stopPropagation();
    setOver(false);
    uploads.add([...(event.dataTransfer?.files ?? [])]);
  };
  return (
    <div
      class={isOver ? "drop-zone over" : "drop-zone"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <input
        ref={input}
        type="file"
        hidden
        multiple={ask.max_files > 1}
        accept={ask.accept.join(",")}
        onChange={(event) => uploads.add([...(event.currentTarget.files ?? [])])}
      />
      <Attachments uploads={uploads} />
      <button type="button" class="chip strong" onClick={() => input.current?.click()}>
        <Icon name="clip" size={16} />
        {words.chooseFiles}
      </button>
      <small>{words.orDrop}</small>
      {isReady && (
        <button
          type="button"
          class="primary"
          onClick={() => client.answer(ask.id, { file_ids: uploads.list.map(({ id }) => id) })}
        >
          {words.submit}
        </button>
      )}
    </div>
  );
}
