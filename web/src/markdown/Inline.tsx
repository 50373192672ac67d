/** What stands inside a line of Markdown. */

import type { Token } from "marked";
import type { ComponentChildren } from "preact";
import { words } from "../words/words";
import { Formula } from "./Formula";
import { safeLink } from "./links";
import type { MathToken } from "./math";

export function Inline({ tokens }: { readonly tokens: readonly Token[] }) {
  return <>{tokens.map(draw)}</>;
}

function draw(token: Token, key: number): ComponentChildren {
  const inner = (): ComponentChildren =>
    token.type !== "escape" && "tokens" in token && token.tokens ? <Inline tokens={token.tokens} /> : decoded(token);
  switch (token.type) {
    case "strong":
      return <strong key={key}>{inner()}</strong>;
    case "em":
      return <em key={key}>{inner()}</em>;
    case "del":
      return <del key={key}>{inner()}</del>;
    case "codespan":
      return <code key={key}>{token.text}</code>;
    case "br":
      return <br key={key} />;
    case "html":
      return token.raw.startsWith("<br") || token.raw.startsWith("<BR") ? <br key={key} /> : token.raw;
    case "link":
      return (
        <Link key={key} href={token.href} title={token.title}>
          {inner()}
        </Link>
      );
    case "image":
      return <RemoteImage key={key} href={token.href} alt={token.text} />;
    case "mathInline":
      return <Formula key={key} token={token as MathToken} />;
    case "text":
      return inner();
    default:
      return "text" in token ? String(token.text) : token.raw;
  }
}

function decoded(token: Token): string {
  return "text" in token ? String(token.text) : token.raw;
}

interface LinkProps {
  readonly href: string;
  readonly title?: string | null | undefined;
  readonly children: ComponentChildren;
}

function Link({ href, title, children }: LinkProps) {
  const address = safeLink(href);
  if (address === null) return <span class="dead-link">{children}</span>;
  return (
    <a href={address} title={title ?? address} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

/** An image that a model names is not loaded: its address could carry what was said to somebody else. */
function RemoteImage({ href, alt }: { readonly href: string; readonly alt: string }) {
  const address = safeLink(href);
  const label = words.noImage(alt);
  if (address === null) return <span class="no-image">{label}</span>;
  return (
    <a class="no-image" href={address} title={words.imageHint} target="_blank" rel="noopener noreferrer nofollow">
      {label}
    </a>
  );
}
