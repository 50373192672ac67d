import type { Token } from "marked";
import { describe, expect, it } from "vitest";
import { type Blocks, NO_BLOCKS, grow } from "../src/markdown/blocks";
import { lexBlocks } from "../src/markdown/lexer";

const TEXTS: Readonly<Record<string, string>> = {
  lists: "Before:\n\n- one\n- two\n\n  more of two\n\n- three\n\n1. first\n2. second\n\nAfter",
  code: "Look:\n\n```python\ndef f(x):\n\n    return f'{x}'\n```\n\nand ~~~ is\n\n~~~\n```\n~~~\n",
  tables: "A\n\n| a | b |\n|---|--:|\n| 1 | `x|y` |\n| 2 | <br>z |\n\ntail\n---\nnot a table | at all\n",
  quotes: "> a\nlazy\n\n> b\n> - c\n\n* * *\n\nSetext\n======\n\n    indented code\n\n    more\n",
  math: "Let $x$ be \\(y\\).\n\n$$\n\\int_0^1 x\\,dx\n- 1\n$$\n\n\\[ a = b \\]\n\nIt costs $5 and $10.\n\n$$\nnever closed\n\nend",
  html: "<script>alert(1)</script>\n\n<div>\n\n**bold** <b>x</b>\n</div>\n\n<!-- a\n\nb -->\n",
  definitions:
    "See [it][1] and [that].\n\nMore.\n\n[1]: https://example.org\n[that]: https://example.com 'title'\n\nend [that]\n",
  nested:
    "1. a\n   - b\n     ```js\n     let x = 1;\n\n     x++\n     ```\n   - c\n\n2. d\n\n\n\nfar\n#\n# Title\n## Another ##\n",
  tabs: "-\ta\n\n\tb\n\n\tcode\r\n\r\nend\r\n",
  japanese:
    "**太字**と**「括弧」**と`コード`。\n二行目 https://example.org。終わり[^1]\n\n[^1]: 脚注\n\n| 名前 | 値 |\n|---|---|\n| 一 | 1 |\n",
};

const all = (blocks: Blocks): Token[] => [...blocks.finished, ...blocks.open].map(plain);
/** A token as data; how many empty lines end a code block that is still open shows nowhere. */
function plain(token: Token): Token {
  const text = token.type === "code" ? { text: token.text.replace(/\n+$/, "") } : {};
  return JSON.parse(JSON.stringify({ ...token, open: undefined, ...text }));
}
const whole = (text: string): Token[] => lexBlocks(text).map(plain);

/** A generator that gives the same cuts in every run. */
function* random(seed: number): Generator<number> {
  for (let state = seed; ; state = (state * 48271) % 2147483647) yield state / 2147483647;
}

describe.each(Object.entries(TEXTS))("%s", (_name, text) => {
  it("gives the same blocks character by character", () => {
    let blocks = NO_BLOCKS;
    for (let i = 1; i <= text.length; i++) {
      blocks = grow(blocks, text.slice(0, i));
      expect(all(blocks), `cut at ${i}: ${JSON.stringify(text.slice(0, i))}`).toEqual(whole(text.slice(0, i)));
    }
  });

  it("gives the same blocks cut at random", () => {
    const numbers = random(7);
    for (let round = 0; round < 50; round++) {
      let blocks = NO_BLOCKS;
      let at = 0;
      while (at < text.length) {
        at += 1 + Math.floor(numbers.next().value * 12);
        blocks = grow(blocks, text.slice(0, at));
      }
      expect(all(blocks)).toEqual(whole(text));
    }
  });
});

it("gives the same blocks for pieces of all texts in any order", () => {
  const numbers = random(11);
  const lines = Object.values(TEXTS).join("\n").split("\n");
  for (let round = 0; round < 150; round++) {
    const text = Array.from({ length: 14 }, () => lines[Math.floor(numbers.next().value * lines.length)]).join("\n");
    let blocks = NO_BLOCKS;
    for (let i = 1; i <= text.length; i++) blocks = grow(blocks, text.slice(0, i));
    expect(all(blocks), JSON.stringify(text)).toEqual(whole(text));
  }
});

it("keeps the tokens of finished blocks", () => {
  const first = grow(NO_BLOCKS, "One.\n\nTwo.\n\nThr");
  const second = grow(first, "One.\n\nTwo.\n\nThree.");
  expect(first.finished.length).toBeGreaterThan(0);
  first.finished.forEach((token, i) => expect(second.finished[i]).toBe(token));
});
