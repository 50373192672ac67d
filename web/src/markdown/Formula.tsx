/** A formula. KaTeX is loaded with the first one; until then, and where it cannot read it, its source is shown. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { MathToken } from "./math";

type Typesetter = typeof import("./typeset");

let typesetter: Typesetter | null = null;
let loading: Promise<Typesetter> | null = null;

function load(): Promise<Typesetter> {
  loading ??= import("./typeset").then((loaded) => (typesetter = loaded));
  return loading;
}

export function Formula({ token }: { readonly token: MathToken }) {
  const { tex, display, closed } = token;
  const [ready, setReady] = useState(typesetter);
  const place = useRef<HTMLSpanElement>(null);

  useLayoutEffect(() => {
    if (!closed) return;
    if (ready !== null && place.current !== null) ready.typeset(tex, place.current, display);
    else load().then(setReady, () => undefined); // the source stays, which says the same
  }, [ready, tex, display, closed]);

  if (!closed) return <p>{token.raw}</p>;
  const Tag = token.type === "mathBlock" ? "div" : "span";
  return (
    <Tag class={display ? "formula display" : "formula"}>
      {ready === null ? <code>{tex}</code> : <span ref={place} />}
    </Tag>
  );
}
