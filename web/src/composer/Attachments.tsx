/** The files that will go along with the next message. */

import { Icon } from "../parts/Icon";
import { words } from "../words/words";
import type { Uploads } from "./uploads";

export function Attachments({ uploads }: { readonly uploads: Uploads }) {
  if (uploads.list.length === 0) return null;
  return (
    <ul class="attachments">
      {uploads.list.map(({ id, name, isDone }) => (
        <li key={id} class="chip" aria-busy={!isDone}>
          {isDone ? <Icon name="file" size={16} /> : <span class="spinner" />}
          <span class="ellipsis">{name}</span>
          <button type="button" class="quiet" aria-label={words.removeFile(name)} onClick={() => uploads.remove(id)}>
            <Icon name="cross" size={14} />
          </button>
        </li>
      ))}
    </ul>
  );
}
