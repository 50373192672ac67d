/** Commands that the server has not answered yet. After a reconnect they go out again, with the same ids. */

import type { Command, Problem } from "../protocol";

/** Thrown to whoever waits for a command that the server refused. */
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
  }
}

interface Waiting {
  readonly command: Command;
  readonly resolve: () => void;
  readonly reject: (reason: Refused) => void;
}

export class Outbox {
  private readonly waiting = new Map<string, Waiting>();

  /** Resolves when the server has accepted the command; throws `Refused` where it does not. */
  add(command: Command): Promise<void> {
    return new Promise((resolve, reject) => this.waiting.set(command.id, { command, resolve, reject }));
  }

  commands(): Command[] {
    return [...this.waiting.values()].map(({ command }) => command);
  }

  accepted(id: string): void {
    this.take(id)?.resolve();
  }

  rejected(id: string, problem: Problem): Command | undefined {
    const found = this.take(id);
    found?.reject(new Refused(problem));
    return found?.command;
  }

  private take(id: string): Waiting | undefined {
    const found = this.waiting.get(id);
    this.waiting.delete(id);
    return found;
  }
}
