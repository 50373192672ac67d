/** The colours of code, as a tree of spans and never as HTML. Each language is loaded when it is first met. */

import type { Emitter, HLJSOptions, LanguageFn } from "highlight.js";
import hljs from "highlight.js/lib/core";

export type Span = string | { readonly kind: string; readonly spans: readonly Span[] };
interface OpenSpan {
  kind: string;
  spans: Span[];
}

type Load = () => Promise<{ default: LanguageFn }>;

const LOADERS: Readonly<Record<string, Load>> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  cmake: () => import("highlight.js/lib/languages/cmake"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  go: () => import("highlight.js/lib/languages/go"),
  haskell: () => import("highlight.js/lib/languages/haskell"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  julia: () => import("highlight.js/lib/languages/julia"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  latex: () => import("highlight.js/lib/languages/latex"),
  lua: () => import("highlight.js/lib/languages/lua"),
  makefile: () => import("highlight.js/lib/languages/makefile"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  php: () => import("highlight.js/lib/languages/php"),
  powershell: () => import("highlight.js/lib/languages/powershell"),
  python: () => import("highlight.js/lib/languages/python"),
  r: () => import("highlight.js/lib/languages/r"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  scala: () => import("highlight.js/lib/languages/scala"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

const OTHER_NAMES: Readonly<Record<string, string>> = {
  sh: "bash",
  shell: "bash",
  zsh: "bash",
  console: "bash",
  h: "c",
  "c++": "cpp",
  hpp: "cpp",
  cc: "cpp",
  cs: "csharp",
  "c#": "csharp",
  patch: "diff",
  docker: "dockerfile",
  golang: "go",
  hs: "haskell",
  toml: "ini",
  js: "javascript",
  jsx: "javascript",
  mjs: "javascript",
  jl: "julia",
  kt: "kotlin",
  tex: "latex",
  make: "makefile",
  md: "markdown",
  ps1: "powershell",
  py: "python",
  python3: "python",
  rb: "ruby",
  rs: "rust",
  ts: "typescript",
  tsx: "typescript",
  html: "xml",
  svg: "xml",
  vue: "xml",
  yml: "yaml",
  jsonc: "json",
};

/** Gathers what highlight.js finds as spans, where its own emitter would write HTML. */
class SpanEmitter implements Emitter {
  private readonly root: OpenSpan = { kind: "", spans: [] };
  private readonly open: OpenSpan[] = [this.root];

  constructor(_options: HLJSOptions) {}

  addText(text: string): void {
    if (text !== "") this.open.at(-1)?.spans.push(text);
  }

  /** Called by highlight.js in two names, of which its types know one. */
  openNode(name: string): void {
    this.startScope(name);
  }

  closeNode(): void {
    this.endScope();
  }

  startScope(name: string): void {
    const span: OpenSpan = { kind: `hl-${name.split(".")[0]}`, spans: [] };
    this.open.at(-1)?.spans.push(span);
    this.open.push(span);
  }

  endScope(): void {
    if (this.open.length > 1) this.open.pop();
  }

  finalize(): void {
    this.open.length = 1;
  }

  toHTML(): string {
    return "";
  }

  __addSublanguage(emitter: SpanEmitter): void {
    this.open.at(-1)?.spans.push(...emitter.spans);
  }

  get spans(): readonly Span[] {
    return this.root.spans;
  }
}

hljs.configure({ __emitter: SpanEmitter });

/** The spans of some code, or null for a language that we have no colours for. */
export async function highlight(text: string, name: string): Promise<readonly Span[] | null> {
  const lower = name.toLowerCase();
  const language = OTHER_NAMES[lower] ?? lower;
  const load = Object.hasOwn(LOADERS, language) ? LOADERS[language] : undefined;
  if (load === undefined) return null;
  if (hljs.getLanguage(language) === undefined) hljs.registerLanguage(language, (await load()).default);
  const { _emitter } = hljs.highlight(text, { language, ignoreIllegals: true });
  return _emitter instanceof SpanEmitter ? _emitter.spans : null;
}
