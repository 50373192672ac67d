/** A Plotly figure. Plotly is large, so it comes with the first chart and not with the page. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Element } from "../protocol";
import { words } from "../words/words";
import { FileCard } from "./FileCard";
import { useContent } from "./content";

export function Chart({ element }: { readonly element: Element }) {
  const content = useContent(element.url);
  const [state, setState] = useState<"loading" | "drawn" | "failed">("loading");
  const place = useRef<HTMLDivElement>(null);
  const text = content.state === "ready" ? content.text : null;
  const colours = useMemo(() => getComputedStyle(document.documentElement), []);

  useEffect(() => {
    const node = place.current;
    if (text === null || node === null) return;
    let remove = (): void => undefined;
    import("./plot")
      .then(async ({ draw }) => {
        remove = await draw(node, text, colours);
        setState("drawn");
      })
      .catch(() => setState("failed"));
    return () => remove();
  }, [text]);

  const isFailed = state === "failed" || content.state === "failed";
  return (
    <>
      {element.name !== "" && <figcaption>{element.name}</figcaption>}
      {state === "loading" && !isFailed && <p class="pulse">{words.loadingChart}</p>}
      {isFailed && (
        <>
          <p class="state">{words.chartFailed}</p>
          <FileCard element={element} />
        </>
      )}
      <div ref={place} class="chart" hidden={isFailed} />
    </>
  );
}
