/** The words of the page in the browser's language, and numbers as people read them. */

import { type Words, en } from "./en";
import { ja } from "./ja";

export const LANGUAGES: Readonly<Record<string, Words>> = { en, ja };

function choose(preferred: readonly string[]): string {
  for (const language of preferred) {
    const short = language.split("-")[0]?.toLowerCase() ?? "";
    if (short in LANGUAGES) return short;
  }
  return "en";
}

export const language = choose(navigator.languages ?? [navigator.language]);
export const words: Words = LANGUAGES[language] ?? en;

/** 0.4 s, 12 s, 3 min 20 s. */
export function duration(seconds: number): string {
  const [second, minute, hour] = language === "ja" ? ["秒", "分", "時間"] : [" s", " min", " h"];
  if (seconds < 9.95) return `${Math.max(seconds, 0.1).toFixed(1)}${second}`;
  if (seconds < 59.5) return `${Math.round(seconds)}${second}`;
  const space = language === "ja" ? "" : " ";
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}${minute}${space}${Math.floor(seconds % 60)}${second}`;
  return `${Math.floor(minutes / 60)}${hour}${space}${minutes % 60}${minute}`;
}

const BYTE_UNITS = ["B", "KB", "MB", "GB", "TB"];

export function bytes(count: number): string {
  const power = count < 1 ? 0 : Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log10(count) / 3));
  const value = count / 1000 ** power;
  return `${value >= 100 || power === 0 ? Math.round(value) : value.toFixed(1)} ${BYTE_UNITS[power]}`;
}
