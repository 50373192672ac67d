/** A piece of work that the app shows: one quiet line, with everything about it behind it. */

import { useEffect, useState } from "preact/hooks";
import { usePage } from "../client";
import { ElementsOf } from "../elements/ElementsOf";
import { Code } from "../markdown/Code";
import { Markdown } from "../markdown/Markdown";
import { Icon } from "../parts/Icon";
import { ProgressBar } from "../parts/ProgressBar";
import type { Step } from "../protocol";
import { words } from "../words/words";
import { Elapsed } from "../parts/Elapsed";
import { Turn } from "./Turn";
import "./step.css";

const NOTHING: readonly string[] = [];

export function StepView({ step, depth }: { readonly step: Step; readonly depth: number }) {
  const children = usePage((page) => page.current.children.get(step.id) ?? NOTHING);
  const [isOpen, setOpen] = useState(step.is_open);
  const isInUse = step.state === "in_use";
  const hasBody = step.input !== "" || step.output !== "";
  const hasInside = hasBody || children.length > 0;

  useEffect(() => {
    if (step.closes_itself && !isInUse) setOpen(false);
    if (step.closes_itself && isInUse) setOpen(true);
  }, [isInUse, step.closes_itself]);

  return (
    <section class="turn step" data-state={step.state} data-type={step.type} data-depth={depth} data-id={step.id}>
      <button
        type="button"
        class="step-line"
        aria-expanded={hasInside ? isOpen : undefined}
        disabled={!hasInside}
        onClick={() => setOpen(!isOpen)}
      >
        <span class="step-dot" aria-hidden="true">
          {step.state === "used" ? (
            <Icon name="check" size={12} />
          ) : step.state === "failed" ? (
            <Icon name="cross" size={12} />
          ) : null}
        </span>
        <span class="step-name">{step.name}</span>
        <span class="step-state">{STATES[step.state]}</span>
        <Elapsed from={step.started_at} to={step.ended_at} isRunning={isInUse} />
        {hasInside && <Icon name="chevron" size={14} />}
      </button>
      {isInUse && step.progress !== null && <ProgressBar progress={step.progress} />}
      {isOpen && hasBody && <StepBody step={step} />}
      <ElementsOf id={step.id} extra={step.element_ids} />
      {(isOpen || isInUse) && children.length > 0 && (
        <div class="step-children">
          {children.map((id) => (
            <Turn key={id} id={id} depth={depth + 1} />
          ))}
        </div>
      )}
    </section>
  );
}

const STATES: Readonly<Record<Step["state"], string>> = {
  in_use: words.inUse,
  used: words.used,
  failed: words.stepFailed,
  stopped: words.stepStopped,
};

function StepBody({ step }: { readonly step: Step }) {
  return (
    <div class="step-body">
      {step.show_input && step.input !== "" && (
        <>
          <h4>{words.input}</h4>
          <Field text={step.input} language={step.input_language ?? ""} isOpen={false} />
        </>
      )}
      {step.output !== "" && (
        <>
          <h4>{step.state === "failed" ? words.failed : words.output}</h4>
          <Field text={step.output} language={step.output_language} isOpen={step.state === "in_use"} />
        </>
      )}
    </div>
  );
}

function Field({
  text,
  language,
  isOpen,
}: {
  readonly text: string;
  readonly language: string | null;
  readonly isOpen: boolean;
}) {
  if (language === null) return <Markdown text={text} isGrowing={isOpen} />;
  return <Code text={text} language={language} isOpen={isOpen} />;
}
