/** Formulas in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`, and none in what is an amount of money. */

import type { MarkedExtension, TokenizerExtension, Tokens } from "marked";

export interface MathToken extends Tokens.Generic {
  readonly type: "mathBlock" | "mathInline";
  readonly tex: string;
  /** A formula of its own line, and not one inside a sentence. */
  readonly display: boolean;
  /** False while its end has not arrived: it is then shown as it was written. */
  readonly closed: boolean;
}

const CLOSING: Readonly<Record<string, string>> = { $$: "$$", "\\[": "\\]" };
const BLOCK_START = /^ {0,3}(\$\$|\\\[)/;
// As in pandoc: no space inside the dollars, and no digit behind them, so that "$5 and $10" stays money.
const DOLLARS = /^\$(?![\s$])((?:\\.|[^\\$\n])*?[^\s\\$]|[^\s\\$])\$(?![\d$])/;
const DOUBLE_DOLLARS = /^\$\$((?:\\.|[^\\$])+?)\$\$/;
const PARENTHESES = /^\\\(((?:(?!\\\))[^\n])+?)\\\)/;
const BRACKETS = /^\\\[((?:(?!\\\])[\s\S])+?)\\\]/;
const PRICE = /^\d[\d.,]*(?:\s|$|[kKmMbB]\b)/;

/** A formula on lines of its own. It ends at its closing mark, or, without one, at an empty line. */
const block: TokenizerExtension = {
  name: "mathBlock",
  level: "block",
  start: (source) => source.match(/^ {0,3}(?:\$\$|\\\[)/m)?.index,
  tokenizer(source): MathToken | undefined {
    const opening = BLOCK_START.exec(source);
    const mark = opening?.[1];
    if (opening === null || mark === undefined) return undefined;
    const from = opening[0].length;
    const empty = /\n[ \t]*(?:\n|$)/.exec(source);
    const limit = empty?.index ?? source.length;
    const end = source.indexOf(CLOSING[mark] ?? mark, from);
    if (end < 0 || end >= limit) {
      return {
        type: "mathBlock",
        raw: source.slice(0, limit),
        tex: source.slice(0, limit),
        display: true,
        closed: false,
      };
    }
    const behind = /^[^\n]*/.exec(source.slice(end + 2))?.[0] ?? "";
    if (behind.trim() !== "") return undefined; // a sentence goes on: the inline rule draws it
    const raw = source.slice(0, end + 2 + behind.length);
    return { type: "mathBlock", raw, tex: source.slice(from, end).trim(), display: true, closed: true };
  },
};

const inline: TokenizerExtension = {
  name: "mathInline",
  level: "inline",
  start: (source) => source.match(/\$|\\[([]/)?.index,
  tokenizer(source): MathToken | undefined {
    const display = DOUBLE_DOLLARS.exec(source) ?? BRACKETS.exec(source);
    const found = display ?? DOLLARS.exec(source) ?? PARENTHESES.exec(source);
    const tex = found?.[1]?.trim();
    if (!found || !tex) return undefined;
    if (found[0].startsWith("$") && !display && PRICE.test(tex)) return undefined;
    return { type: "mathInline", raw: found[0], tex, display: display !== null, closed: true };
  },
};

export const mathExtension: MarkedExtension = { extensions: [block, inline] };
