/** One block of Markdown. */

import type { Token, Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { Code } from "./Code";
import { Formula } from "./Formula";
import { Inline } from "./Inline";
import type { MathToken } from "./math";
import { Table } from "./Table";

export function Block({ token }: { readonly token: Token }) {
  switch (token.type) {
    case "paragraph":
      return <p>{inline(token.tokens)}</p>;
    case "heading":
      return <Heading token={token as Tokens.Heading} />;
    case "code":
      return <Code text={token.text} language={token.lang ?? ""} isOpen={"open" in token && token.open === true} />;
    case "list":
      return <List token={token as Tokens.List} />;
    case "blockquote":
      return <blockquote>{blocks(token.tokens)}</blockquote>;
    case "table":
      return <Table token={token as Tokens.Table} />;
    case "mathBlock":
      return <Formula token={token as MathToken} />;
    case "hr":
      return <hr />;
    case "text":
      return <>{token.tokens ? inline(token.tokens) : token.text}</>;
    case "space":
    case "def":
      return null;
    default:
      return <p>{token.raw}</p>;
  }
}

function blocks(tokens: readonly Token[] | undefined): ComponentChildren {
  return tokens?.map((token, i) => <Block key={i} token={token} />);
}

function inline(tokens: readonly Token[] | undefined): ComponentChildren {
  return <Inline tokens={tokens ?? []} />;
}

/** Two steps down: the page itself has the first headings. */
function Heading({ token }: { readonly token: Tokens.Heading }) {
  const Tag = `h${Math.min(6, token.depth + 2)}` as "h3";
  return <Tag data-depth={token.depth}>{inline(token.tokens)}</Tag>;
}

function List({ token }: { readonly token: Tokens.List }) {
  const items = token.items.map((item, i) => (
    <li key={i} class={item.task ? "task" : undefined}>
      {item.task && <input type="checkbox" checked={item.checked === true} disabled />}
      {blocks(item.tokens.filter(({ type }) => type !== "checkbox"))}
    </li>
  ));
  return token.ordered ? <ol start={token.start === "" ? 1 : token.start}>{items}</ol> : <ul>{items}</ul>;
}
