/** What a person has to know about the connection, in words. */

import { useEffect, useState } from "preact/hooks";
import { usePage } from "../client";
import { words } from "../words/words";

/** A break that nobody would notice is not told. */
const QUIET_MS = 700;

export function Notices() {
  const link = usePage((page) => page.link);
  const isBusy = usePage((page) => page.isBusy);
  const wasConnected = usePage((page) => page.app !== null);
  const [isLong, setLong] = useState(false);

  useEffect(() => {
    if (link === "open") return setLong(false);
    const timer = setTimeout(() => setLong(true), QUIET_MS);
    return () => clearTimeout(timer);
  }, [link === "open"]);

  if (isLong && link !== "open") {
    return (
      <p class="notice" role="status">
        <span class="spinner" />
        {wasConnected ? words.reconnecting : words.connecting}
      </p>
    );
  }
  return isBusy ? (
    <p class="notice" role="status">
      <span class="spinner" />
      {words.busy}
    </p>
  ) : null;
}
