import type { Plugin } from "vite";

/** KaTeX names each font in three formats. Every browser that runs this page reads woff2. */
export function katexFonts(): Plugin {
  return {
    name: "katex-fonts",
    enforce: "pre",
    transform(code, id) {
      if (!id.includes("katex") || !id.endsWith(".css")) return null;
      return code.replace(/,\s*url\([^)]*\.(?:woff|ttf)\)\s*format\("[^"]*"\)/g, "");
    },
  };
}
