/** How long a question still waits; said only once it matters. */

import { useEffect, useState } from "preact/hooks";
import { duration, words } from "../words/words";

const SHOWN_S = 60;

export function Deadline({ at }: { readonly at: number }) {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, []);
  const left = at - now;
  if (left > SHOWN_S || left <= 0) return null;
  return <small class="state">{words.timeLeft(duration(Math.max(1, Math.round(left))))}</small>;
}
