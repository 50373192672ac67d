/** Text as it was written. A very long one is drawn in pieces, so that only what is in view is laid out. */

const PIECE_CHARS = 20_000;

export function PlainText({ text }: { readonly text: string }) {
  if (text.length <= PIECE_CHARS)
    return (
      <div class="plain" dir="auto">
        {text}
      </div>
    );
  return (
    <div class="plain long" dir="auto" tabIndex={0}>
      {pieces(text).map((piece, i) => (
        <div key={i} class="piece">
          {piece}
        </div>
      ))}
    </div>
  );
}

/** From this length on, an answer is no longer read as Markdown. */
PlainText.MIN_CHARS = 400_000;

/** Cuts at line ends where there are any, and never inside a character. */
export function pieces(text: string): string[] {
  const found: string[] = [];
  for (let start = 0; start < text.length;) {
    const limit = Math.min(start + PIECE_CHARS, text.length);
    const line = text.lastIndexOf("\n", limit - 1);
    let end = limit === text.length || line <= start ? limit : line + 1;
    if (end < text.length && /[\uDC00-\uDFFF]/.test(text[end] ?? "")) end += 1;
    found.push(text.slice(start, end));
    start = end;
  }
  return found;
}
