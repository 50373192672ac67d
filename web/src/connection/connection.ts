/** One connection that always comes back, opens its chat where it was, and sends again what is unanswered. */

import { newId } from "../address";
import { type Command, type Frame, PROTOCOL_VERSION } from "../protocol";
import type { Link } from "../state/page";
import { Outbox } from "./outbox";
import { EventsTransport, type Listener, SocketTransport, type Transport } from "./transport";

export interface Client {
  linkChanged(link: Link): void;
  /** Frames since the last time, in order. */
  received(frames: readonly Frame[]): void;
  /** The connection never opened; resolves with whether the server is there nevertheless. */
  refused(): Promise<boolean>;
  /** What brings the server to where the page is: sent after every welcome, before what is unanswered. */
  greeting(): Command[];
}

const MAX_WAIT_MS = 5_000;
const HIDDEN_MS = 250;
const SILENCE_MS = 20_000;
const TRIES_BEFORE_EVENTS = 2;

export class Connection implements Listener {
  readonly outbox = new Outbox();
  private transport: Transport | null = null;
  private link: Link = "connecting";
  private numFailures = 0;
  /** How often a server that is there let no connection open: something between us may allow no WebSocket. */
  private numRefused = 0;
  private retry = 0;
  private frames: Frame[] = [];
  private isFlushing = false;
  private lastFrameAt = 0;

  constructor(private readonly client: Client) {
    addEventListener("online", () => this.connect());
    addEventListener("offline", () => this.transport?.close());
    document.addEventListener("visibilitychange", () => !document.hidden && this.connect());
  }

  /** Connects at once, unless that is already so. */
  connect(): void {
    if (this.transport !== null) return;
    clearTimeout(this.retry);
    this.become("connecting");
    const Way = this.numRefused >= TRIES_BEFORE_EVENTS && this.numRefused % 2 === 0 ? EventsTransport : SocketTransport;
    this.transport = new Way(newId(), this);
  }

  /** Drops the connection and makes a new one: after a login, or to read a chat from its beginning. */
  reconnect(): void {
    this.transport?.close();
    this.connect();
  }

  /** Sends a command as soon as there is a connection; resolves when the server accepted it. */
  send(command: Command): Promise<void> {
    const answer = this.outbox.add(command);
    if (this.link === "open") this.transport?.send(JSON.stringify(command));
    const sentAt = Date.now();
    setTimeout(() => this.doubt(sentAt), SILENCE_MS);
    return answer;
  }

  /** A server that answers nothing at all is gone, although nobody has told the browser. */
  private doubt(sentAt: number): void {
    const isSilent = this.lastFrameAt < sentAt && this.outbox.commands().length > 0;
    if (this.link === "open" && isSilent) this.transport?.close();
  }

  /** Sends a command if there is a connection, once. */
  tell(command: Command): void {
    if (this.link === "open") this.transport?.send(JSON.stringify(command));
  }

  opened(): void {
    const hello: Command = { type: "hello", id: newId(), version: PROTOCOL_VERSION, language: navigator.language };
    this.transport?.send(JSON.stringify(hello));
  }

  received(frame: Frame): void {
    this.lastFrameAt = Date.now();
    this.frames.push(frame);
    if (frame.type === "welcome") {
      this.flush(); // what it says of the app decides with which profile a chat begins
      this.welcomed();
    }
    if (this.isFlushing) return;
    this.isFlushing = true;
    // One drawing per picture of the screen, however many frames; nothing is drawn in a tab that nobody sees.
    if (document.hidden) setTimeout(() => this.flush(), HIDDEN_MS);
    else requestAnimationFrame(() => this.flush());
  }

  closed(wasOpen: boolean): void {
    this.transport = null;
    this.flush();
    if (!wasOpen) void this.client.refused().then((isThere) => isThere && (this.numRefused += 1));
    this.become("waiting");
    const wait = Math.min(MAX_WAIT_MS, 250 * 2 ** this.numFailures) * (0.75 + Math.random() / 2);
    this.numFailures += 1;
    clearTimeout(this.retry);
    this.retry = window.setTimeout(() => this.connect(), wait);
  }

  private welcomed(): void {
    this.numFailures = 0;
    this.numRefused = 0;
    this.become("open");
    const again = this.outbox.commands();
    for (const command of [...this.client.greeting(), ...again]) this.transport?.send(JSON.stringify(command));
  }

  private flush(): void {
    this.isFlushing = false;
    if (this.frames.length === 0) return;
    const frames = this.frames;
    this.frames = [];
    for (const frame of frames) {
      if (frame.type === "accepted") this.outbox.accepted(frame.id);
      else if (frame.type === "rejected" && frame.id !== null) this.outbox.rejected(frame.id, frame.problem);
    }
    this.client.received(frames);
  }

  private become(link: Link): void {
    if (link === this.link) return;
    this.link = link;
    this.client.linkChanged(link);
  }
}
