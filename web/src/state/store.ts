/** A value that many parts of the page watch, each only the piece that it draws. */

import { useLayoutEffect, useReducer, useRef } from "preact/hooks";

export class Store<S> {
  private readonly watchers = new Set<() => void>();

  constructor(private state: S) {}

  get(): S {
    return this.state;
  }

  /** Takes the next state; watchers hear of it only when it is another one. */
  set(state: S): void {
    if (state === this.state) return;
    this.state = state;
    for (const watcher of [...this.watchers]) watcher();
  }

  update(change: (state: S) => S): void {
    this.set(change(this.state));
  }

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
}

/** The piece of the store that `select` picks; the component is drawn again when that piece is another one. */
export function useSelected<S, T>(store: Store<S>, select: (state: S) => T): T {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const latest = useRef({ select, value: select(store.get()) });
  const value = select(store.get());
  latest.current = { select, value };
  useLayoutEffect(() => {
    const check = (): void => {
      const next = latest.current.select(store.get());
      if (!Object.is(next, latest.current.value)) redraw(0);
    };
    check();
    return store.watch(check);
  }, [store]);
  return value;
}
