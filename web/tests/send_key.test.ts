import { expect, it } from "vitest";
import { SendKey } from "../src/composer/send_key";

interface Key {
  keyCode?: number;
  isComposing?: boolean;
  at?: number;
  key?: string;
  shiftKey?: boolean;
}

function press({ keyCode = 13, isComposing = false, at = 1000, key = "Enter", shiftKey = false }: Key): KeyboardEvent {
  return { key, keyCode, isComposing, timeStamp: at, shiftKey, altKey: false } as KeyboardEvent;
}

const ended = (at: number): Event => ({ timeStamp: at }) as Event;

it("sends with Enter, and not with Shift and Enter or another key", () => {
  const keys = new SendKey();
  expect(keys.sends(press({}))).toBe(true);
  expect(keys.sends(press({ shiftKey: true }))).toBe(false);
  expect(keys.sends(press({ key: "a", keyCode: 65 }))).toBe(false);
});

it("does not send while composing: keydown, then compositionend (Chrome, Firefox)", () => {
  const keys = new SendKey();
  keys.compositionStarted();
  expect(keys.sends(press({ keyCode: 229, isComposing: true, at: 1000 }))).toBe(false);
  keys.compositionEnded(ended(1001));
  expect(keys.sends(press({ at: 1500 }))).toBe(true);
});

it("does not send when compositionend comes first (Safari)", () => {
  const keys = new SendKey();
  keys.compositionStarted();
  keys.compositionEnded(ended(1000));
  expect(keys.sends(press({ keyCode: 229, at: 1001 }))).toBe(false);
  expect(keys.sends(press({ at: 1500 }))).toBe(true);
});

it("does not send in the moment in which a composition ends", () => {
  const keys = new SendKey();
  keys.compositionStarted();
  keys.compositionEnded(ended(1000));
  expect(keys.sends(press({ at: 1002 }))).toBe(false);
  expect(keys.sends(press({ at: 1400 }))).toBe(true);
});
