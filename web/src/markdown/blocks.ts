/**
 * Markdown that grows: finished blocks are parsed once and kept, only what is still open is parsed again.
 *
 * Cut anywhere, the blocks of the whole are the same. A block is finished when two lines of the next one are
 * complete, because until then they may still turn out to belong to it: a dash becomes a list's next item, a row of
 * dashes the head of a table.
 */

import type { Token } from "marked";
import { lexBlocks } from "./lexer";

export interface Blocks {
  readonly text: string;
  /** Blocks that no further text can change. */
  readonly finished: readonly Token[];
  /** What is still open: usually one block. */
  readonly open: readonly Token[];
  /** Where the open part of the text begins. */
  readonly start: number;
}

export const NO_BLOCKS: Blocks = { text: "", finished: [], open: [], start: 0 };

const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]*)\n/;

/** The blocks of `text`, out of those of its beginning; any other text is parsed from its start. */
export function grow(before: Blocks, text: string): Blocks {
  if (text === before.text) return before;
  if (!text.startsWith(before.text)) return grow(NO_BLOCKS, text);
  const source = text.slice(before.start);
  const code = openFence(source);
  if (code !== null) return { ...before, text, open: [code] };

  const tokens = lexBlocks(source);
  // A definition may mean a reference anywhere above it: a text that has one is parsed as a whole.
  if (Object.keys(tokens.links).length > 0) {
    return { text, finished: [], open: before.start > 0 ? lexBlocks(text) : tokens, start: 0 };
  }
  return settled(before, text, tokens);
}

function settled(before: Blocks, text: string, tokens: Token[]): Blocks {
  let offset = before.start;
  const starts = tokens.map((token) => {
    const start = offset;
    offset += token.raw.length;
    return start;
  });
  // Raw text and offsets agree unless the lexer replaced characters, as it does with tabs and carriage returns.
  const isExact = offset === text.length;
  let keep = 0;
  for (let i = 1; isExact && i < tokens.length; i++) {
    if (tokens[i]?.type !== "space" && hasTwoLines(text, starts[i] ?? text.length)) keep = i;
  }
  return {
    text,
    finished: keep > 0 ? [...before.finished, ...tokens.slice(0, keep)] : before.finished,
    open: tokens.slice(keep),
    start: starts[keep] ?? before.start,
  };
}

function hasTwoLines(text: string, start: number): boolean {
  const end = text.indexOf("\n", start);
  return end >= 0 && text.indexOf("\n", end + 1) >= 0;
}

/** The code of a fence that is not closed yet, found without parsing what is in it. */
function openFence(source: string): Token | null {
  const opening = FENCE.exec(source);
  const mark = opening?.[1];
  if (opening === null || mark === undefined) return null;
  const info = opening[2] ?? "";
  if (mark.startsWith("`") && info.includes("`")) return null;
  const closing = new RegExp(`\\n {0,3}\\${mark[0]}{${mark.length},}[~\`]* *(?:\\n|$)`);
  if (closing.test(source.slice(opening[0].length - 1))) return null;
  const raw = source.replace(/\r\n?/g, "\n");
  const text = raw.slice(opening[0].replace("\r", "").length).replace(/\n+$/, "");
  return { type: "code", raw, text, lang: info.trim(), open: true };
}
