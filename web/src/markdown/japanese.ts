/** What Markdown's rules, made for words between spaces, miss in Japanese and Chinese. */

import { Tokenizer, type MarkedExtension, type TokenizerExtension, type Tokens } from "marked";

const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uffef]/u;
const EDGED = /^\p{P}|\p{P}$/u;
const STRONG = /^\*\*(?![\s*])((?:\\.|[^\\*\n]|\*(?!\*))+?)(?<![\s*])\*\*(?!\*)/;
// What ends a sentence or opens a bracket, and is in no address.
const AFTER_ADDRESS = /[\u3000-\u3002\u3008-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]/;

/** Between letters, CommonMark takes the stars of `**「強調」**です` for text: a bracket stands inside, no space outside. */
const strong: TokenizerExtension = {
  name: "strong",
  level: "inline",
  start: (source) => source.match(/\*\*/)?.index,
  tokenizer(source): Tokens.Strong | undefined {
    const [raw, text] = STRONG.exec(source) ?? [];
    if (raw === undefined || text === undefined || !EDGED.test(text) || !WIDE.test(text)) return undefined;
    return { type: "strong", raw, text, tokens: this.lexer.inlineTokens(text) };
  },
};

export const japaneseExtension: MarkedExtension = {
  extensions: [strong],
  tokenizer: {
    url(source) {
      const end = source.search(AFTER_ADDRESS);
      return Tokenizer.prototype.url.call(this, end < 0 ? source : source.slice(0, end));
    },
  },
};
