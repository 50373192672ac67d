/** One dialect of Markdown: GitHub's, with formulas; a line stays a line; and HTML stays what it is: text. */

import { Marked, type TokensList } from "marked";
import { japaneseExtension } from "./japanese";
import { mathExtension } from "./math";

const marked = new Marked({ gfm: true, breaks: true }, mathExtension, japaneseExtension, {
  tokenizer: {
    // A footnote is no link: as one it would be taken out of the text, and drawn nowhere.
    def: (source) => (/^ {0,3}\[\^/.test(source) ? undefined : false),
    // Nothing that a model writes is HTML to us. `<br>` is the one tag that tables cannot do without.
    html: () => undefined,
    tag(source) {
      const tag = /^<br\s*\/?>/i.exec(source)?.[0];
      if (tag === undefined) return undefined;
      return { type: "html", raw: tag, text: tag, block: false, inLink: false, inRawBlock: false };
    },
  },
});

/** The blocks of a text, and the definitions of links that it holds. */
export function lexBlocks(source: string): TokensList {
  return marked.lexer(source);
}
