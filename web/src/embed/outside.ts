/** The page around this one, where this one is embedded: messages both ways, and functions that an app may call. */

import type { Client } from "../client";

export const isEmbedded = window.parent !== window;

/** Who may talk to an embedded page: the site that it was embedded by, and nobody else. */
const parentOrigin = isEmbedded && document.referrer !== "" ? new URL(document.referrer).origin : null;

interface Returned {
  readonly kaiwa: "returned";
  readonly callId: string;
  readonly result?: unknown;
  readonly error?: string;
}

export function connectOutside(client: Client): void {
  if (parentOrigin === null) return;
  const post = (message: object): void => window.parent.postMessage(message, parentOrigin);

  client.onOutwardFrame = (frame) => {
    if (frame.type === "window_message") post({ kaiwa: "message", data: frame.data });
    if (frame.type === "call_function") {
      post({ kaiwa: "call", callId: frame.call_id, name: frame.name, arguments: frame.arguments });
    }
  };

  addEventListener("message", (event: MessageEvent<unknown>) => {
    if (event.source !== window.parent || event.origin !== parentOrigin) return;
    if (isReturned(event.data))
      client.callReturned(event.data.callId, event.data.result ?? null, event.data.error ?? null);
    else client.postWindowMessage(event.data);
  });
}

function isReturned(data: unknown): data is Returned {
  return typeof data === "object" && data !== null && "kaiwa" in data && data.kaiwa === "returned";
}
