import { expect, it } from "vitest";
import { pieces } from "../src/chat/PlainText";
import { problemOf } from "../src/composer/uploads";
import { fitting } from "../src/composer/CommandMenu";
import { parseFrame, sorted } from "../src/elements/frame";
import { grouped } from "../src/rail/groups";
import { chatOf } from "../src/address";
import { LANGUAGES, bytes, duration } from "../src/words/words";
import { en } from "../src/words/en";

it("cuts a long text into pieces that make it up again", () => {
  for (const text of ["😀".repeat(30_000), "a line\n".repeat(9000), "x".repeat(45_001), ""]) {
    expect(pieces(text).join("")).toBe(text);
    for (const piece of pieces(text)) expect(piece.isWellFormed()).toBe(true);
  }
});

it("refuses files in words before they are sent", () => {
  const limits = { maxBytes: 10, maxFiles: 1, accept: ["image/*", ".txt"] };
  expect(problemOf({ name: "a.png", size: 5, type: "image/png" }, limits)).toBeNull();
  expect(problemOf({ name: "A.TXT", size: 5, type: "" }, limits)).toBeNull();
  expect(problemOf({ name: "a.exe", size: 5, type: "application/x" }, limits)).toContain("a.exe");
  expect(problemOf({ name: "a.png", size: 50, type: "image/png" }, limits)).toContain("10 B");
});

it("offers the commands that begin with what was typed", () => {
  const command = { description: "", icon: null, is_button: false, is_persistent: false, is_selected: false };
  const commands = [
    { ...command, id: "search" },
    { ...command, id: "draw" },
  ];
  expect(fitting(commands, "/s").map(({ id }) => id)).toEqual(["search"]);
  expect(fitting(commands, "/").length).toBe(2);
  expect(fitting(commands, "a/s").length).toBe(0);
});

it("reads and sorts data frames, and nothing else", () => {
  expect(parseFrame("[]")).toBeNull();
  expect(parseFrame("{")).toBeNull();
  const frame = parseFrame('{"columns": ["a"], "rows": [[10], [9], [null], [1]]}');
  expect(sorted(frame?.rows ?? [], { column: 0, isFalling: false })).toEqual([[1], [9], [10], [null]]);
  expect(sorted(frame?.rows ?? [], { column: 0, isFalling: true })).toEqual([[10], [9], [1], [null]]);
});

it("groups chats by day", () => {
  const now = new Date(2026, 10, 30, 12);
  const chat = (id: string, daysAgo: number) => ({
    id,
    title: id,
    profile: null,
    created_at: 0,
    updated_at: now.getTime() / 1000 - daysAgo * 86_400,
    num_messages: 1,
    run_state: "idle" as const,
  });
  const groups = grouped([chat("a", 0), chat("b", 1), chat("c", 3), chat("d", 30)], now);
  expect(groups.map(({ label }) => label)).toEqual([en.today, en.yesterday, en.thisWeek, en.earlier]);
});

it("finds the chat in an address", () => {
  expect(chatOf("/below/chat/abc-1")).toBe("abc-1");
  expect(chatOf("/")).toBeNull();
});

it("says the same things in every language", () => {
  for (const language of Object.values(LANGUAGES)) {
    expect(Object.keys(language)).toEqual(Object.keys(en));
    for (const [key, word] of Object.entries(language)) {
      expect(typeof word).toBe(typeof en[key as keyof typeof en]);
      expect(word).not.toBe("");
    }
  }
});

it("writes numbers as people read them", () => {
  expect([duration(0.42), duration(12.3), duration(200), duration(7260)]).toEqual([
    "0.4 s",
    "12 s",
    "3 min 20 s",
    "2 h 1 min",
  ]);
  expect([bytes(0), bytes(999), bytes(1500), bytes(640e6)]).toEqual(["0 B", "999 B", "1.5 KB", "640 MB"]);
});
