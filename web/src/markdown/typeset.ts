/** KaTeX, held to what a stranger's formula may do: no links, no classes, no endless macros. */

import katex from "katex";
import "katex/dist/katex.min.css";

/** Draws a formula as elements; one that cannot be read is shown as it was written. */
export function typeset(tex: string, place: HTMLElement, displayMode: boolean): void {
  try {
    katex.render(tex, place, { displayMode, trust: false, maxSize: 20, maxExpand: 500, strict: "ignore" });
  } catch {
    place.textContent = tex;
    place.title = "TeX";
  }
}
