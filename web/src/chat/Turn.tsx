/** A message or a step, whichever has this id. Drawn again only when that one changes. */

import { memo } from "preact/compat";
import { usePage } from "../client";
import { MessageView } from "./MessageView";
import { StepView } from "./StepView";

export const Turn = memo(({ id, depth = 0 }: { id: string; depth?: number }) => {
  const message = usePage((page) => page.current.messages.get(id));
  const step = usePage((page) => page.current.steps.get(id));
  if (message !== undefined) return <MessageView message={message} />;
  if (step !== undefined) return <StepView step={step} depth={depth} />;
  return null;
});
