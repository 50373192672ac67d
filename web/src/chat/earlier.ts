/** Draws the end of a long conversation first, and what came before as the reader gets there. */

import { useEffect, useRef, useState } from "preact/hooks";

const FIRST = 40;
const MORE = 40;

export function useEarlier(ids: readonly string[], key: string) {
  const [shown, setShown] = useState({ key, count: FIRST });
  const count = shown.key === key ? shown.count : FIRST;
  const sentinel = useRef<HTMLDivElement>(null);
  const hidden = Math.max(0, ids.length - count);

  useEffect(() => {
    if (sentinel.current === null || hidden === 0) return;
    const watcher = new IntersectionObserver(
      ([entry]) => entry?.isIntersecting === true && setShown({ key, count: count + MORE }),
      { rootMargin: "600px" },
    );
    watcher.observe(sentinel.current);
    return () => watcher.disconnect();
  }, [hidden, count, key]);

  return { ids: hidden > 0 ? ids.slice(hidden) : ids, sentinel, hasHidden: hidden > 0 };
}
