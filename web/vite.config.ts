import { defineConfig } from "vite";
import { katexFonts } from "./plugins/katex_fonts.ts";

/** Two builds: the page, and the one script that other sites embed. Both without a byte from elsewhere. */
export default defineConfig(({ mode }) => ({
  base: "./",
  plugins: [katexFonts()],
  build: {
    outDir: "../src/kaiwa/ui/page",
    emptyOutDir: mode !== "embed",
    copyPublicDir: mode !== "embed",
    target: "es2022",
    assetsInlineLimit: 0, // data: addresses would need an exception in the Content-Security-Policy
    modulePreload: { polyfill: false }, // an inline script, which the policy refuses
    cssCodeSplit: true,
    chunkSizeWarningLimit: 2000,
    ...(mode === "embed" && {
      lib: { entry: "src/embed/embed.ts", formats: ["iife" as const], name: "kaiwaEmbed", fileName: () => "embed.js" },
    }),
  },
}));
