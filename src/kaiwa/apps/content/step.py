"""Step: a piece of work that people see while it is in use, and may look into when it was used."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

from kaiwa.apps.content.elements import Element
from kaiwa.apps.content.growing import Outcome
from kaiwa.apps.context import STEP_IDS, Context, current
from kaiwa.apps.protocol import records
from kaiwa.apps.protocol.events import ElementAdded, StepAdded, StepProgress, StepRemoved, StepText, StepUpdated
from kaiwa.apps.storage.entries import KeepFile
from kaiwa.apps.storage.growth import Growth
from kaiwa.apps.work.ids import new_id
from kaiwa.errors import Cancelled, InvalidOption, did_you_mean

StepType = Literal["run", "tool", "llm", "embedding", "retrieval", "rerank", "undefined"]
TYPES: tuple[StepType, ...] = ("run", "tool", "llm", "embedding", "retrieval", "rerank", "undefined")
_STATES: dict[Outcome, records.StepState] = {"done": "used", "stopped": "stopped", "failed": "failed"}


class Step:
    """A piece of work, as a context manager: `with` where nothing in it waits, `async with` where you like.

        with kw.Step("Look it up", type="tool") as step:
            step.input = query
            step.output = await search(query)

    An error in it makes it failed and goes on. Steps inside others are nested. `input` and `output` may be text or
    anything that JSON can say. `show_input` is False, True, or the language of the input.

    Raises `InvalidOption` for an unknown `type`.
    """

    def __init__(
        self,
        name: str | None = None,
        type: StepType = "undefined",
        id: str | None = None,
        parent_id: str | None = None,
        elements: Sequence[Element] | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
        language: str | None = None,
        icon: str | None = None,
        default_open: bool = False,
        auto_collapse: bool = False,
        show_input: bool | str = "json",
    ) -> None:
        if type not in TYPES:
            raise InvalidOption(f"there is no step of type {type!r}", hint=did_you_mean(type, TYPES))
        self.id = id or new_id()
        self.name = name
        self.type = type
        self.parent_id = parent_id
        self.elements = list(elements or ())
        self.metadata = dict(metadata or {})
        self.tags = list(tags or ())
        self.language = language
        self.icon = icon
        self.default_open = default_open
        self.auto_collapse = auto_collapse
        self.show_input = show_input
        self.is_error = False
        self.start: float | None = None
        self.end_time: float | None = None
        self._input = _Field(self.id, "input")
        self._output = _Field(self.id, "output")
        self._progress: records.Progress | None = None
        self._state: records.StepState = "in_use"
        self._context: Context | None = None

    @property
    def input(self) -> str:
        """What the work begins with."""
        return self._input.text

    @input.setter
    def input(self, value: object) -> None:
        self._input.set(value)

    @property
    def output(self) -> str:
        """What came of it."""
        return self._output.text

    @output.setter
    def output(self, value: object) -> None:
        self._output.set(value)

    def progress(self, done: float, total: float, *, stage: str = "", unit: str = "") -> None:
        """Show how far the work is, as a bar; with a `total` of 0, as one that does not know."""
        self._progress = records.Progress(stage=stage, done=done, total=total, unit=unit)
        self._open_context().emit(StepProgress(step_id=self.id, progress=self._progress))

    async def stream_token(self, token: str, is_sequence: bool = False, is_input: bool = False) -> None:
        """Show one more piece of the output or input, or with `is_sequence` what takes the place of all of it."""
        field = self._input if is_input else self._output
        if self._context is None:
            self._begin()
        context = self._open_context()
        if is_sequence:
            field.set(token)
            context.emit(StepUpdated(step=self.record()))
        elif token:
            field.pieces.append(token)
            context.grow(field.growth, token)

    async def send(self) -> Self:
        """Show the step, in use; `update` after it ends it where it is not used by `with`."""
        self._begin()
        return self

    async def update(self) -> bool:
        """Show the step as it is now. One that was sent by hand is used then."""
        context = self._open_context()
        if self._state == "in_use" and self.id not in STEP_IDS.get():
            self._close("failed" if self.is_error else "used")
        else:
            context.emit(StepUpdated(step=self.record()))
        return True

    async def remove(self) -> None:
        """Take the step away."""
        context = self._open_context()
        context.session.growing.pop(self.id, None)
        context.emit(StepRemoved(step_id=self.id))

    def end(self, outcome: Outcome) -> None:
        """End it with the run that it began in."""
        if self._state == "in_use":
            self._close(_STATES[outcome])

    def record(self) -> records.Step:
        """As pages know it."""
        assert self.start is not None
        return records.Step(
            id=self.id,
            name=self.name or "",
            type=self.type,
            parent_id=self.parent_id,
            state=self._state,
            started_at=self.start,
            ended_at=self.end_time,
            input=self._input.text,
            output=self._output.text,
            input_language=self.show_input if isinstance(self.show_input, str) else self._input.language,
            output_language=self.language or self._output.language,
            show_input=bool(self.show_input),
            is_open=self.default_open,
            closes_itself=self.auto_collapse,
            icon=self.icon,
            progress=self._progress,
            element_ids=tuple(element.id for element in self.elements),
            tags=tuple(self.tags),
            metadata=self.metadata,
        )

    def __enter__(self) -> Self:
        self._begin()
        STEP_IDS.set((*STEP_IDS.get(), self.id))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        STEP_IDS.set(tuple(step_id for step_id in STEP_IDS.get() if step_id != self.id))
        if isinstance(error, asyncio.CancelledError | Cancelled):
            self._close("stopped")
        elif error is not None:
            self.is_error = True
            self.output = self.output or f"{type(error).__name__}: {error}"
            self._close("failed")
        else:
            self._close("failed" if self.is_error else "used")

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    def _begin(self) -> None:
        context = self._context = current()
        context.check()
        self.name = self.name or context.session.author
        step_ids = STEP_IDS.get()
        self.parent_id = self.parent_id or (step_ids[-1] if step_ids else None)
        self.start = time.time()
        context.session.growing[self.id] = self
        context.emit(StepAdded(step=self.record()))

    def _close(self, state: records.StepState) -> None:
        context = self._open_context()
        self._state = state
        self.end_time = time.time()
        context.session.growing.pop(self.id, None)
        for element in self.elements:
            if element.for_id != self.id:
                self._send(element, context)
        context.session.emit(StepUpdated(step=self.record()))

    def _send(self, element: Element, context: Context) -> None:
        num_bytes = element.store(context.session.files, context.session.chat_id)
        element.for_id = self.id
        if num_bytes is not None:
            context.session.emit(KeepFile(element.id, element.name, element.mime, num_bytes))
        context.session.emit(ElementAdded(element=element.record(num_bytes)))

    def _open_context(self) -> Context:
        if self._context is None:
            raise InvalidOption(
                f"the step {self.name!r} was not begun",
                hint="write `with step:` around the work, or `await step.send()` before it",
            )
        return self._context


class _Field:
    """The input or the output of a step: text, or what JSON says of something else."""

    def __init__(self, step_id: str, name: Literal["input", "output"]) -> None:
        self._step_id = step_id
        self._name = name
        self.set("")

    def set(self, value: object) -> None:
        self.language = None if isinstance(value, str) else "json"
        text = value if isinstance(value, str) else as_json(value)
        self.pieces = [text]
        self.growth = Growth(self._event, so_far=text)

    @property
    def text(self) -> str:
        self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def _event(self, start: int, text: str) -> StepText:
        return StepText(step_id=self._step_id, field=self._name, start=start, text=text)


def as_json(value: object) -> str:
    """A value as JSON, with the words of `repr` where it has no others."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=repr)
