/** One part of a message: text, a thought, or the call of a tool. */

import { Code } from "../markdown/Code";
import { Markdown } from "../markdown/Markdown";
import type { Part } from "../protocol";
import { PlainText } from "./PlainText";
import { Reasoning } from "./Reasoning";
import { ToolCall } from "./ToolCall";

interface Props {
  readonly part: Part;
  readonly language: string | null;
  readonly isGrowing: boolean;
  readonly isMine: boolean;
}

export function PartView({ part, language, isGrowing, isMine }: Props) {
  switch (part.kind) {
    case "reasoning":
      return <Reasoning part={part} isGrowing={isGrowing} />;
    case "tool_call":
      return <ToolCall part={part} isGrowing={isGrowing} />;
    case "text":
      if (language !== null) return <Code text={part.text} language={language} isOpen={isGrowing} />;
      if (isMine && part.text === "") return null; // files alone were sent
      if (isMine || part.text.length > PlainText.MIN_CHARS) return <PlainText text={part.text} />;
      return <Markdown text={part.text} isGrowing={isGrowing} />;
  }
}
