/** A tool that a model called, with what it asked and what came back. */

import { useState } from "preact/hooks";
import { Code } from "../markdown/Code";
import { Icon } from "../parts/Icon";
import type { ToolCallPart } from "../protocol";
import { words } from "../words/words";

export function ToolCall({ part, isGrowing }: { readonly part: ToolCallPart; readonly isGrowing: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const isCalling = part.result === null && isGrowing;
  return (
    <section class="fold tool-call" data-open={isOpen} data-failed={part.is_error}>
      <button type="button" class="fold-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name="chevron" size={14} />
        <Icon name="tool" size={15} />
        <span class={isCalling ? "pulse" : ""}>
          {isCalling ? words.callingTool(part.name) : words.toolCall(part.name)}
        </span>
      </button>
      {isOpen && (
        <div class="fold-body">
          <h4>{words.input}</h4>
          <Code text={indented(part.arguments)} language="json" isOpen={isCalling} />
          {part.result !== null && (
            <>
              <h4>{part.is_error ? words.failed : words.result}</h4>
              <Code text={indented(part.result)} language={looksLikeJson(part.result) ? "json" : ""} />
            </>
          )}
        </div>
      )}
    </section>
  );
}

function looksLikeJson(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json; // not whole yet, or no JSON at all
  }
}
