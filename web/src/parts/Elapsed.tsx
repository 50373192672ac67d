/** How long something took, or how long it takes already. */

import { useEffect, useState } from "preact/hooks";
import { duration } from "../words/words";

interface Props {
  /** Seconds since 1970, by the server's clock. */
  readonly from: number;
  readonly to: number | null;
  readonly isRunning: boolean;
}

const SHOWN_FROM_S = 0.1;

export function Elapsed({ from, to, isRunning }: Props) {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => setNow(Date.now() / 1000), 500);
    return () => clearInterval(timer);
  }, [isRunning]);
  const seconds = (to ?? now) - from;
  if ((to === null && !isRunning) || seconds < SHOWN_FROM_S) return null;
  return <time class="elapsed">{duration(seconds)}</time>;
}
