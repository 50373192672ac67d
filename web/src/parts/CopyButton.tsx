/** Copies a text, and says so for a moment. */

import { useState } from "preact/hooks";
import { words } from "../words/words";
import { Icon } from "./Icon";

const SHOWN_MS = 1500;

export function CopyButton({ text }: { readonly text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await writeClipboard(text);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MS);
  };
  const label = isCopied ? words.copied : words.copy;
  return (
    <button type="button" class="quiet icon-button" title={label} aria-label={label} onClick={() => void copy()}>
      <Icon name={isCopied ? "check" : "copy"} size={16} />
    </button>
  );
}

async function writeClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  // Browsers give the clipboard to pages from https and from this machine only; this way works on others.
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
