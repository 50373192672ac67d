/** One dialect of Markdown: GitHub's, with formulas, and without HTML, which stays what it is: text. */

import { Marked, type TokensList } from "marked";
import { mathExtension } from "./math";

const marked = new Marked({ gfm: true, breaks: false }, mathExtension, {
  tokenizer: {
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
