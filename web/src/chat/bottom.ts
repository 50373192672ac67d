/** Stays at the end of a growing conversation, until the reader goes elsewhere. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";

const NEAR_PX = 60;

export interface Bottom {
  readonly scroller: { current: HTMLDivElement | null };
  readonly content: { current: HTMLDivElement | null };
  /** False once the reader has gone up: then nothing moves under their eyes. */
  readonly isFollowing: boolean;
  follow(): void;
}

/** `key` is another one where the conversation is: every conversation opens at its end. */
export function useBottom(key: string): Bottom {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const [isFollowing, setFollowing] = useState(true);

  const become = (value: boolean): void => {
    following.current = value;
    setFollowing(value);
  };

  useLayoutEffect(() => {
    const box = scroller.current;
    const inner = content.current;
    if (box === null || inner === null) return;
    let lastTop = box.scrollTop;
    let lastHeight = box.scrollHeight;
    const toEnd = (): void => {
      if (following.current) box.scrollTop = box.scrollHeight;
      lastTop = box.scrollTop;
      lastHeight = box.scrollHeight;
    };
    const scrolled = (): void => {
      const isNear = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
      // Going up is the reader's doing, unless the conversation itself became shorter.
      const wentUp = box.scrollTop < lastTop - 1 && box.scrollHeight >= lastHeight;
      if (following.current && wentUp && !isNear) become(false);
      else if (!following.current && isNear && box.scrollTop > lastTop) become(true);
      lastTop = box.scrollTop;
      lastHeight = box.scrollHeight;
    };
    const wheel = (event: WheelEvent): void => {
      if (event.deltaY < 0 && box.scrollHeight > box.clientHeight) become(false);
    };
    const growth = new ResizeObserver(toEnd);
    growth.observe(inner);
    growth.observe(box);
    box.addEventListener("scroll", scrolled, { passive: true });
    box.addEventListener("wheel", wheel, { passive: true });
    become(true);
    toEnd();
    return () => {
      growth.disconnect();
      box.removeEventListener("scroll", scrolled);
      box.removeEventListener("wheel", wheel);
    };
  }, [key]);

  const follow = (): void => {
    become(true);
    const box = scroller.current;
    if (box !== null) box.scrollTop = box.scrollHeight;
  };
  return { scroller, content, isFollowing, follow };
}
