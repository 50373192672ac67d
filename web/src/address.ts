/** Addresses: everything is relative to where the app lives, which may be below any path. */

/** The folder of the app. The page itself may be at `chat/ID` in it: the built page says so in its <base>. */
export function home(): string {
  return document.baseURI.replace(/[?#].*$/, "").replace(/[^/]*$/, "");
}

/** The whole address of one that is relative to the app. */
export function absolute(relative: string): string {
  return new URL(relative, home()).href;
}

/** The chat that the address in the browser names. */
export function chatOf(path: string): string | null {
  return /\/chat\/([A-Za-z0-9_-]{1,64})\/?$/.exec(path)?.[1] ?? null;
}

export function newId(): string {
  // randomUUID exists only where the page came by https or from this machine.
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
