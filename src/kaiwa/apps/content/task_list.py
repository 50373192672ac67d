"""TaskList: what an app is about to do, beside the chat."""

from __future__ import annotations

from enum import Enum

from kaiwa.apps.context import current
from kaiwa.apps.protocol import records
from kaiwa.apps.protocol.events import TaskListChanged


class TaskStatus(Enum):
    """How far a task is."""

    READY = "ready"
    RUNNING = "running"
    FAILED = "failed"
    DONE = "done"


class Task:
    """A line of the list; `forId` is the message or step that it leads to."""

    def __init__(self, title: str, status: TaskStatus = TaskStatus.READY, forId: str | None = None) -> None:  # noqa: N803  (Chainlit's name)
        self.title = title
        self.status = status
        self.forId = forId


class TaskList:
    """The list. Change it, and `send` or `update` it; there is one for each chat."""

    def __init__(self, tasks: list[Task] | None = None, status: str = "Ready") -> None:
        self.tasks = list(tasks or ())
        self.status = status

    async def add_task(self, task: Task) -> None:
        """Add a line; pages see it with the next `send`."""
        self.tasks.append(task)

    async def send(self) -> None:
        """Show the list as it is now."""
        tasks = tuple(records.Task(title=task.title, state=task.status.value, for_id=task.forId) for task in self.tasks)
        current().emit(TaskListChanged(task_list=records.TaskList(status=self.status, tasks=tasks)))

    async def update(self) -> None:
        """Show the list as it is now."""
        await self.send()

    async def remove(self) -> None:
        """Take the list away."""
        current().emit(TaskListChanged(task_list=None))
