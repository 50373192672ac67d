/** What the app is about to do, and how far it is. */

import { useState } from "preact/hooks";
import { usePage } from "../client";
import { Icon } from "../parts/Icon";
import type { Task } from "../protocol";
import { words } from "../words/words";

export function TaskListView() {
  const list = usePage((page) => page.current.taskList);
  const [isOpen, setOpen] = useState(true);
  if (list === null || list.tasks.length === 0) return null;
  const done = list.tasks.filter(({ state }) => state === "done").length;
  return (
    <section class="task-list" aria-label={words.tasks}>
      <button type="button" class="fold-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class="turning" data-open={isOpen}>
          <Icon name="chevron" size={14} />
        </span>
        <span>{list.status || words.tasks}</span>
        <span class="percent">
          {done} / {list.tasks.length}
        </span>
      </button>
      {isOpen && (
        <ol>
          {list.tasks.map((task, i) => (
            <TaskLine key={i} task={task} />
          ))}
        </ol>
      )}
    </section>
  );
}

function TaskLine({ task }: { readonly task: Task }) {
  const go = (): void => {
    const target = [...document.querySelectorAll(".turn[data-id]")].find(
      (turn) => turn.getAttribute("data-id") === task.for_id,
    );
    target?.scrollIntoView({ block: "center" });
  };
  return (
    <li data-state={task.state} aria-current={task.state === "running" ? "step" : undefined}>
      <span class="step-dot" aria-hidden="true">
        {task.state === "done" && <Icon name="check" size={12} />}
        {task.state === "failed" && <Icon name="cross" size={12} />}
      </span>
      {task.for_id === null ? (
        <span>{task.title}</span>
      ) : (
        <button type="button" class="link" onClick={go}>
          {task.title}
        </button>
      )}
    </li>
  );
}
