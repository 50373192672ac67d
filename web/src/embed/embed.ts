/**
 * The script that another site embeds: `<script src="https://…/embed.js"></script>`.
 *
 * It puts a button into the corner, and behind it the page in a frame. The site may offer functions to the app in
 * `window.kaiwaFunctions`, hears the app's messages as `kaiwa-message` events, and answers with `kaiwa.post(data)`.
 */

import { WIDGET_CSS } from "./widget_css";

type Functions = Readonly<Record<string, (values: unknown) => unknown>>;
declare global {
  interface Window {
    kaiwaFunctions?: Functions;
    kaiwa?: { open(): void; close(): void; post(data: unknown): void };
  }
}

const script = document.currentScript as HTMLScriptElement | null;
const home = new URL(".", script?.src ?? location.href);

function mount(): void {
  const host = document.createElement("kaiwa-widget");
  const root = host.attachShadow({ mode: "closed" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(WIDGET_CSS);
  root.adoptedStyleSheets = [sheet];

  const button = document.createElement("button");
  button.textContent = "会";
  button.setAttribute("aria-label", script?.dataset["label"] ?? "Chat");
  button.setAttribute("aria-expanded", "false");
  const frame = document.createElement("iframe");
  frame.title = button.getAttribute("aria-label") ?? "Chat";
  frame.hidden = true;
  frame.allow = "clipboard-write";
  root.append(frame, button);

  const show = (isOpen: boolean): void => {
    if (isOpen && frame.src === "") frame.src = home.href; // loaded when it is first wanted
    frame.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
  };
  const post = (data: unknown): void => frame.contentWindow?.postMessage(data, home.origin);
  button.addEventListener("click", () => show(frame.hidden !== false));

  addEventListener("message", (event: MessageEvent<unknown>) => {
    if (event.source !== frame.contentWindow || event.origin !== home.origin) return;
    const data = event.data as { kaiwa?: string; data?: unknown; callId?: string; name?: string; arguments?: unknown };
    if (data.kaiwa === "message") dispatchEvent(new CustomEvent("kaiwa-message", { detail: data.data }));
    if (data.kaiwa === "call") void call(data.callId ?? "", data.name ?? "", data.arguments).then(post);
  });
  window.kaiwa = { open: () => show(true), close: () => show(false), post };
  document.body.append(host);
}

/** Calls what the site offers; its error goes back to the app, which asked. */
async function call(callId: string, name: string, values: unknown): Promise<object> {
  const offered = window.kaiwaFunctions ?? {};
  const wanted = Object.hasOwn(offered, name) ? offered[name] : undefined;
  if (wanted === undefined) {
    return {
      kaiwa: "returned",
      callId,
      error: `This site offers no function ${name}; it has: ${Object.keys(offered).join(", ") || "none"}.`,
    };
  }
  try {
    return { kaiwa: "returned", callId, result: (await wanted(values)) ?? null };
  } catch (reason) {
    return { kaiwa: "returned", callId, error: String(reason) };
  }
}

if (document.readyState === "loading") addEventListener("DOMContentLoaded", mount);
else mount();
