/** The two ways to the server: one WebSocket; or, where a proxy allows none, server-sent events and POST. */

import { absolute } from "../address";
import type { Frame } from "../protocol";

export interface Listener {
  opened(): void;
  received(frame: Frame): void;
  /** The way is closed and stays so. `wasOpen` is false where it never opened. */
  closed(wasOpen: boolean): void;
}

export interface Transport {
  send(text: string): void;
  close(): void;
}

/** What is longer goes by POST: many proxies cut off large messages of a WebSocket. */
const MAX_SOCKET_CHARS = 200_000;

export class SocketTransport implements Transport {
  private readonly socket: WebSocket;
  private wasOpen = false;
  private isClosed = false;

  constructor(
    private readonly connectionId: string,
    private readonly listener: Listener,
  ) {
    this.socket = new WebSocket(absolute(`api/socket?connection=${connectionId}`).replace(/^http/, "ws"));
    this.socket.onopen = () => {
      this.wasOpen = true;
      listener.opened();
    };
    this.socket.onmessage = ({ data }: MessageEvent<string>) => listener.received(JSON.parse(data) as Frame);
    this.socket.onclose = () => this.end();
  }

  send(text: string): void {
    if (text.length <= MAX_SOCKET_CHARS) this.socket.send(text);
    else void post(this.connectionId, text).catch(() => this.close());
  }

  close(): void {
    this.socket.close();
    this.end(); // a browser without a network tells us only minutes later
  }

  private end(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.socket.onmessage = null;
    this.listener.closed(this.wasOpen);
  }
}

export class EventsTransport implements Transport {
  private readonly source: EventSource;
  private queue: Promise<unknown> = Promise.resolve();
  private wasOpen = false;
  private isClosed = false;

  constructor(
    private readonly connectionId: string,
    private readonly listener: Listener,
  ) {
    this.source = new EventSource(absolute(`api/events?connection=${connectionId}`));
    this.source.onopen = () => {
      this.wasOpen = true;
      listener.opened();
    };
    this.source.onmessage = ({ data }: MessageEvent<string>) => listener.received(JSON.parse(data) as Frame);
    this.source.onerror = () => this.close();
  }

  /** Commands arrive in the order in which they were sent. */
  send(text: string): void {
    this.queue = this.queue.then(() => post(this.connectionId, text)).catch(() => this.close());
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.source.close();
    this.listener.closed(this.wasOpen);
  }
}

async function post(connectionId: string, text: string): Promise<void> {
  const headers = { "Content-Type": "application/json" };
  await fetch(absolute(`api/commands?connection=${connectionId}`), { method: "POST", headers, body: text });
}
