"""ModelProcess: a model in a process of its own, which may crash without taking this one along."""

from __future__ import annotations

import atexit
import itertools
import os
import sys
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from kaiwa.chat.address import is_address
from kaiwa.chat.embedding import Embedding
from kaiwa.chat.model import ModelCard
from kaiwa.chat.reply import collect
from kaiwa.chat.tool_schema import schemas
from kaiwa.closing import Closing
from kaiwa.engines.engine import Pooling
from kaiwa.events import Event, Progress, Reply
from kaiwa.messages import Conversation
from kaiwa.runtime.bell import Bell, TaskBell, ThreadBell
from kaiwa.runtime.pool.admission import Admission, Alone, Load, PooledModel
from kaiwa.runtime.process import worker
from kaiwa.runtime.process.calls import Call, ProcessStream
from kaiwa.runtime.process.supervisor import BACK_OFF_S, State, Supervisor
from kaiwa.runtime.process.wire import Ask, Start
from kaiwa.sampling import Sampling


class ModelProcess(Closing):
    """A `kaiwa.LLM` in a child process, with the same methods.

        with ModelProcess("smollm2:135m") as model:
            print(model.chat("Hello").text)

    If the process ends by itself, what it was answering raises `EngineCrashed`, and it is started again; requests that
    come meanwhile wait for it. After several crashes without an answer between them it is given up: all further calls
    raise `EngineCrashed`. The process ends with this one, however that comes about.

    The keywords are those of `kaiwa.LLM`. `make` is called with them in the child, where it must be importable.

    Raises what `kaiwa.LLM` raises, and `EngineCrashed` where the process ends while it loads the model.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        on_progress: Callable[[Progress], None] | None = None,
        admission: Admission | None = None,
        make: Callable[..., PooledModel] = worker.load_llm,
        back_off_s: Sequence[float] = BACK_OFF_S,
        **options: Any,
    ) -> None:
        most_bytes, share_bytes = (admission.most_bytes, admission.share_bytes) if admission else (None, None)
        start = Start(make, {"model": model, **options}, most_bytes, share_bytes)
        self._numbers = itertools.count()
        self._supervisor = Supervisor(start, back_off_s)
        self._supervisor.begin(admission or Alone(on_progress))
        _open_processes.add(self)

    @property
    def card(self) -> ModelCard:
        """What this model is, and what it costs."""
        return self._supervisor.ready.card

    @property
    def sampling(self) -> Sampling:
        """The options that hold where a call gives none: those of the model's own generation config."""
        return self._supervisor.ready.sampling

    @property
    def chat_template(self) -> str | None:
        """The source of the model's chat template, or None where it has none."""
        return self._supervisor.ready.chat_template

    @property
    def state(self) -> State:
        """Whether the process is there, starts again, or is given up."""
        return self._supervisor.state

    @property
    def pid(self) -> int:
        """The process that holds the model now."""
        return self._supervisor.pid

    def chat(self, messages: Conversation, **options: Any) -> Reply:
        """As `LLM.chat`."""
        return collect(self.stream(messages, **options))

    def stream(self, messages: Conversation, **options: Any) -> ProcessStream:
        """As `LLM.stream`."""
        return self._stream("stream", messages, options)

    def stream_text(self, prompt: str | Sequence[int], **options: Any) -> ProcessStream:
        """As `LLM.stream_text`."""
        return self._stream("stream_text", prompt, options)

    async def achat(self, messages: Conversation, **options: Any) -> Reply:
        """As `LLM.achat`."""
        return collect([event async for event in self.astream(messages, **options)])

    def astream(self, messages: Conversation, **options: Any) -> AsyncGenerator[Event]:
        """As `LLM.astream`; whatever it raises comes before the first event."""
        return self._astream("stream", messages, options)

    def astream_text(self, prompt: str | Sequence[int], **options: Any) -> AsyncGenerator[Event]:
        """As `LLM.astream_text`; whatever it raises comes before the first event."""
        return self._astream("stream_text", prompt, options)

    def embed(self, texts: Sequence[str | Sequence[int]], *, pooling: Pooling | None = None) -> list[Embedding]:
        """As `LLM.embed`."""
        return list(self._ask("embed", texts, pooling=pooling))

    async def aembed(self, texts: Sequence[str | Sequence[int]], *, pooling: Pooling | None = None) -> list[Embedding]:
        """As `LLM.aembed`."""
        return list(await self._aask("embed", texts, pooling=pooling))

    def count_tokens(self, messages: Conversation, **options: Any) -> int:
        """As `LLM.count_tokens`."""
        return int(self._ask("count_tokens", messages, **options))

    def tokenize(self, text: str) -> list[int]:
        """As `LLM.tokenize`."""
        return list(self._ask("tokenize", text))

    def detokenize(self, token_ids: Sequence[int]) -> str:
        """As `LLM.detokenize`."""
        return str(self._ask("detokenize", token_ids))

    def close(self) -> None:
        """End the process. What is being answered ends with an error."""
        self._supervisor.close()

    def __repr__(self) -> str:
        return f"<ModelProcess {self.card.name}: {self.state.value}, process {self.pid}>"

    def _stream(self, method: str, argument: Any, options: Mapping[str, Any]) -> ProcessStream:
        bell = ThreadBell()
        stream = ProcessStream(self._call(bell, method, argument, options=options, is_stream=True), bell)
        stream.begin()
        return stream

    async def _astream(self, method: str, argument: Any, options: Mapping[str, Any]) -> AsyncGenerator[Event]:
        bell = TaskBell()
        call = self._call(bell, method, argument, options=options, is_stream=True)
        try:
            while not call.is_over:
                for event in call.events():
                    yield event
                if not call.is_over:
                    await bell.wait()
        finally:
            call.end()

    def _ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        bell = ThreadBell()
        call = self._call(bell, method, *arguments, options=options)
        try:
            while not (values := call.values()):
                bell.wait()
        finally:
            call.end()
        return values[0]

    async def _aask(self, method: str, *arguments: Any, **options: Any) -> Any:
        bell = TaskBell()
        call = self._call(bell, method, *arguments, options=options)
        try:
            while not (values := call.values()):
                await bell.wait()
        finally:
            call.end()
        return values[0]

    def _call(
        self, bell: Bell, method: str, *arguments: Any, options: Mapping[str, Any], is_stream: bool = False
    ) -> Call:
        if tools := options.get("tools"):
            options = {**options, "tools": schemas(tools)}  # functions stay here: the child only tells of their calls
        ask = Ask(next(self._numbers), method, arguments, dict(options), is_stream)
        call = Call(ask, bell, self._supervisor.send)
        self._supervisor.submit(call)
        return call


def isolated(model: str | os.PathLike[str], **options: Any) -> Load:
    """How a pool loads a model where nobody says otherwise: in a child.

    A server's address needs none, and Windows has no socket pairs.
    """
    if is_address(model):
        return at(str(model), **options)
    return in_process(model, **options) if sys.platform == "win32" else in_child(model, **options)


def at(address: str, **options: Any) -> Load:
    """How a pool comes to a model on another server, which takes no memory here; the keywords are `RemoteModel`'s."""

    def load(admission: Admission) -> PooledModel:
        from kaiwa.chat.remote import RemoteModel

        admission.admit(0)
        return RemoteModel(address, **options)

    return load


def in_child(model: str | os.PathLike[str], **options: Any) -> Load:
    """How a pool loads a `ModelProcess`; the keywords are those of `kaiwa.LLM`."""
    return lambda admission: ModelProcess(model, admission=admission, **options)


def in_process(model: str | os.PathLike[str], **options: Any) -> Load:
    """How a pool loads a `kaiwa.LLM` into this process."""

    def load(admission: Admission) -> PooledModel:
        from kaiwa.runtime.llm import LLM
        from kaiwa.runtime.loading.budget import Budget, within

        with within(Budget(admission.most_bytes, admission.share_bytes, admission.admit)):
            return LLM(model, on_progress=admission.report, **options)

    return load


_open_processes: weakref.WeakSet[ModelProcess] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for process in tuple(_open_processes):
        process.close()
