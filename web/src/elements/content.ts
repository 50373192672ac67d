/** What an element holds, fetched once. */

import { useEffect, useState } from "preact/hooks";
import { absolute } from "../address";

const kept = new Map<string, Promise<string>>();
const MAX_KEPT = 50;

function load(url: string): Promise<string> {
  const known = kept.get(url);
  if (known !== undefined) return known;
  const loading = fetch(absolute(url)).then((answer) => {
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    return answer.text();
  });
  kept.set(url, loading);
  loading.catch(() => kept.delete(url));
  for (const oldest of [...kept.keys()].slice(0, kept.size - MAX_KEPT)) kept.delete(oldest);
  return loading;
}

export type Content = { readonly state: "loading" | "failed" } | { readonly state: "ready"; readonly text: string };

export function useContent(url: string | null): Content {
  const [content, setContent] = useState<Content>({ state: "loading" });
  useEffect(() => {
    let isGone = false;
    const done = (next: Content): void => {
      if (!isGone) setContent(next);
    };
    if (url === null) done({ state: "failed" });
    else
      load(url).then(
        (text) => done({ state: "ready", text }),
        () => done({ state: "failed" }),
      );
    return () => {
      isGone = true;
    };
  }, [url]);
  return content;
}
