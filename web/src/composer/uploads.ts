/** Files on their way to the server, one by one, each checked before a byte is sent. */

import { useState } from "preact/hooks";
import { absolute, newId } from "../address";
import { useClient } from "../client";
import { bytes, words } from "../words/words";

export interface Upload {
  readonly id: string;
  readonly name: string;
  readonly isDone: boolean;
}

export interface Limits {
  readonly maxBytes: number;
  readonly maxFiles: number;
  /** MIME types and endings, as in HTML; empty is anything. */
  readonly accept: readonly string[];
}

export interface Uploads {
  readonly list: readonly Upload[];
  readonly isBusy: boolean;
  add(files: readonly File[]): void;
  remove(id: string): void;
  clear(): void;
}

export function useUploads(limits: Limits): Uploads {
  const client = useClient();
  const [list, setList] = useState<readonly Upload[]>([]);
  const remove = (id: string): void => setList((before) => before.filter((upload) => upload.id !== id));

  const start = async (file: File): Promise<void> => {
    const id = newId();
    setList((before) => [...before, { id, name: file.name, isDone: false }]);
    try {
      await put(client.store.get().current.id, id, file);
      setList((before) => before.map((upload) => (upload.id === id ? { ...upload, isDone: true } : upload)));
    } catch (reason) {
      remove(id);
      client.toast("error", `${words.uploadFailed(file.name)} ${reason instanceof Error ? reason.message : ""}`.trim());
    }
  };

  const add = (files: readonly File[]): void => {
    const room = limits.maxFiles - list.length;
    if (files.length > room) client.toast("warning", words.tooMany(limits.maxFiles));
    for (const file of files.slice(0, room)) {
      const problem = problemOf(file, limits);
      if (problem === null) void start(file);
      else client.toast("warning", problem);
    }
  };

  return { list, isBusy: list.some(({ isDone }) => !isDone), add, remove, clear: () => setList([]) };
}

/** Why a file is not accepted, in words; null where it is. */
export function problemOf(file: Pick<File, "name" | "size" | "type">, limits: Limits): string | null {
  if (file.size > limits.maxBytes) return words.tooLarge(file.name, bytes(limits.maxBytes));
  const { accept } = limits;
  if (accept.length === 0 || accept.some((pattern) => matches(file, pattern))) return null;
  return words.wrongKind(file.name);
}

function matches(file: Pick<File, "name" | "type">, pattern: string): boolean {
  if (pattern === "*/*" || pattern === "*") return true;
  if (pattern.startsWith(".")) return file.name.toLowerCase().endsWith(pattern.toLowerCase());
  if (pattern.endsWith("/*")) return file.type.startsWith(pattern.slice(0, -1));
  return file.type === pattern;
}

async function put(chatId: string, fileId: string, file: File): Promise<void> {
  const address = absolute(`api/files/${chatId}/${fileId}?name=${encodeURIComponent(file.name)}`);
  const headers = { "Content-Type": file.type || "application/octet-stream" };
  const answer = await fetch(address, { method: "PUT", body: file, headers });
  if (answer.ok) return;
  const problem = (await answer.json().catch(() => null)) as { message?: string } | null;
  throw new Error(problem?.message ?? `HTTP ${answer.status}`);
}
