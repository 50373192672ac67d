/** Markdown, also while it grows. It becomes elements, never HTML: what a model wrote has no way to be run. */

import type { Token } from "marked";
import { memo } from "preact/compat";
import { useMemo, useRef } from "preact/hooks";
import { Block } from "./Block";
import { type Blocks, NO_BLOCKS, grow } from "./blocks";
import { lexBlocks } from "./lexer";
import { closeMarks } from "./open_marks";
import "./markdown.css";

interface Props {
  readonly text: string;
  /** Whether more is to come: marks that are still open are then drawn as closed. */
  readonly isGrowing?: boolean;
}

export function Markdown({ text, isGrowing = false }: Props) {
  const blocks = useRef<Blocks>(NO_BLOCKS);
  blocks.current = grow(blocks.current, text);
  const { finished, open } = blocks.current;
  const last = open.at(-1);
  const shown = useMemo(() => (isGrowing && last !== undefined ? tidied(open, last) : open), [isGrowing, open]);
  return (
    <div class="markdown" dir="auto">
      {finished.map((token, i) => (
        <FinishedBlock key={i} token={token} />
      ))}
      {shown.map((token, i) => (
        <FinishedBlock key={finished.length + i} token={token} />
      ))}
    </div>
  );
}

/** A block is drawn again only when it is another token, and a finished token stays the same. */
const FinishedBlock = memo(({ token }: { token: Token }) => <Block token={token} />);

function tidied(open: readonly Token[], last: Token): readonly Token[] {
  if (last.type !== "paragraph" && last.type !== "list" && last.type !== "heading" && last.type !== "blockquote")
    return open;
  const raw = closeMarks(last.raw);
  return raw === last.raw ? open : [...open.slice(0, -1), ...lexBlocks(raw)];
}
