import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const TOKENS = readFileSync("src/style/tokens.css", "utf-8");
const MIN_CONTRAST = 4.5; // WCAG 2.2, level AA, for text

/** The colours of one scheme, by their names. */
function colours(css: string): Map<string, string> {
  return new Map([...css.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(([, name = "", value = ""]) => [name, value]));
}

/** The relative luminance of a colour, as WCAG defines it. */
function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const [lightCss = "", darkCss = ""] = TOKENS.split("@media (prefers-color-scheme: dark)");
const light = colours(lightCss);
const SCHEMES = { light, dark: new Map([...light, ...colours(darkCss)]) };

const PAIRS: readonly (readonly [string, string])[] = [
  ...["ink", "ink-soft", "ink-faint", "accent", "bad", "good"].map((name) => [name, "paper"] as const),
  ...["ink", "ink-soft", "ink-faint", "accent"].map((name) => [name, "raised"] as const),
  ...["ink", "ink-soft", "ink-faint"].map((name) => [name, "rail"] as const),
  ...["keyword", "string", "number", "title", "comment", "name"].map((name) => [`hl-${name}`, "code"] as const),
  ["ink", "bubble"],
  ["accent-ink", "accent"],
  ["accent", "accent-wash"],
  ["bad", "bad-wash"],
  ["ink-faint", "code"],
];

for (const [scheme, palette] of Object.entries(SCHEMES)) {
  it.each(PAIRS)(`can be read in ${scheme}: %s on %s`, (text, ground) => {
    const found = [palette.get(text), palette.get(ground)];
    expect(found).not.toContain(undefined);
    expect(contrast(found[0] ?? "", found[1] ?? "")).toBeGreaterThanOrEqual(MIN_CONTRAST);
  });
}
