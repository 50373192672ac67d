/** A block of code: plain while it grows, coloured once it is whole. */

import { memo } from "preact/compat";
import { useEffect, useState } from "preact/hooks";
import { CopyButton } from "../parts/CopyButton";
import type { Span } from "./highlight";

interface Props {
  readonly text: string;
  readonly language: string;
  readonly isOpen?: boolean;
}

/** Longer code stays plain: colouring it would hold up the page. */
const MAX_CHARS = 60_000;

export function Code({ text, language, isOpen = false }: Props) {
  const name = /^[\w#+.-]*/.exec(language.trim())?.[0] ?? "";
  const spans = useSpans(text, name, isOpen);
  return (
    <figure class="code">
      <figcaption>
        <span>{name || "text"}</span>
        <CopyButton text={text} />
      </figcaption>
      <pre tabIndex={0}>
        <code>{spans === null ? text : <Coloured spans={spans} />}</code>
      </pre>
    </figure>
  );
}

function useSpans(text: string, language: string, isOpen: boolean): readonly Span[] | null {
  const [found, setFound] = useState<{ text: string; spans: readonly Span[] } | null>(null);
  useEffect(() => {
    if (isOpen || language === "" || text.length > MAX_CHARS) return;
    let isGone = false;
    const colour = async (): Promise<void> => {
      const { highlight } = await import("./highlight");
      const spans = await highlight(text, language);
      if (!isGone && spans !== null) setFound({ text, spans });
    };
    colour().catch(() => undefined); // plain code is code, too
    return () => {
      isGone = true;
    };
  }, [text, language, isOpen]);
  return found?.text === text ? found.spans : null;
}

const Coloured = memo(({ spans }: { spans: readonly Span[] }) => (
  <>
    {spans.map((span, i) =>
      typeof span === "string" ? (
        span
      ) : (
        <span key={i} class={span.kind}>
          <Coloured spans={span.spans} />
        </span>
      ),
    )}
  </>
));
