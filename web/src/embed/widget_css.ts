/** How the widget looks on somebody else's page: a stylesheet of its own, which theirs does not reach. */

export const WIDGET_CSS = `
button {
  position: fixed; right: 20px; bottom: 20px; z-index: 2147483000;
  width: 56px; height: 56px; border: 0; border-radius: 18px; cursor: pointer;
  background: #b5442f; color: #fffaf3; font: 600 26px/1 "Hiragino Mincho ProN", "Yu Mincho", "Noto Serif CJK JP", serif;
  box-shadow: 0 6px 24px rgb(40 20 10 / 0.28); transition: transform 150ms ease;
}
button:hover { transform: translateY(-2px); }
button:focus-visible { outline: 3px solid #2f5d8c; outline-offset: 3px; }
iframe {
  position: fixed; right: 20px; bottom: 88px; z-index: 2147483000;
  width: min(420px, calc(100vw - 40px)); height: min(680px, calc(100vh - 120px));
  border: 1px solid rgb(0 0 0 / 0.1); border-radius: 18px; background: #fbf9f5;
  box-shadow: 0 18px 60px rgb(40 20 10 / 0.25);
}
iframe[hidden] { display: none; }
@media (max-width: 480px) {
  iframe { inset: 0 0 84px 0; width: 100vw; height: auto; border-radius: 0; }
}
@media (prefers-reduced-motion: reduce) { button { transition: none; } }
`;
