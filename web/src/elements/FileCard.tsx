/** A file to take along. */

import { absolute } from "../address";
import { Icon } from "../parts/Icon";
import type { Element } from "../protocol";
import { bytes, words } from "../words/words";

export function FileCard({ element }: { readonly element: Element }) {
  const { name, url, num_bytes, mime } = element;
  if (url === null) return <span class="chip">{name}</span>;
  const kind = /\.(\w{1,8})$/.exec(name)?.[1] ?? mime.split("/").at(-1) ?? "";
  const facts = [kind.toUpperCase(), num_bytes === null ? "" : bytes(num_bytes)];
  return (
    <a class="file-card" href={absolute(url)} download={name} title={words.download}>
      <Icon name="file" size={22} />
      <span class="ellipsis">
        <strong>{name}</strong>
        <small>{facts.filter(Boolean).join(" · ")}</small>
      </span>
      <Icon name="download" />
    </a>
  );
}
