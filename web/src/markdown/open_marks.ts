/** Marks that the end of a growing text leaves open: drawn as if they were closed, so that nothing flickers. */

const LINK_TAIL = /!?\[[^\]\n]*(?:\](?:\([^)\n]*)?)?$/;

/** The raw text of an open block with its emphasis, code and link closed for the eye. */
export function closeMarks(text: string): string {
  const lineStart = text.lastIndexOf("\n\n") + 1;
  const tail = text.slice(lineStart);
  const ticks = tail.match(/`+/g) ?? [];
  if (ticks.length % 2 === 1) return text + (ticks.at(-1) ?? "`");
  const link = LINK_TAIL.exec(tail)?.[0];
  if (link !== undefined && /^!?\[[^\]]+\]\(/.test(link)) {
    return closeMarks(text.slice(0, text.length - link.length)) + link.replace(/^!?\[([^\]]*)[\s\S]*$/, "$1");
  }
  const plain = tail.replace(/`[^`]*`/g, "").replace(/\\./g, "");
  const strong = (plain.match(/\*\*(?!\s*$)/g) ?? []).length % 2 === 1;
  if (/\*+\s*$/.test(plain)) return text.replace(/\*+\s*$/, strong ? "**" : "");
  return strong && !/\s$/.test(text) ? `${text}**` : text;
}
