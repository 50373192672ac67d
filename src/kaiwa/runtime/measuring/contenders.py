"""Runtimes that are measured side by side, each in a process of its own, so that its memory is its own too."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from kaiwa.chat.model import ModelCard
from kaiwa.closing import Closing
from kaiwa.errors import KaiwaError, MissingExtra
from kaiwa.events import Timings
from kaiwa.extras import require
from kaiwa.runtime.loading.memory import peak_bytes

TEXT = """The library stood at the end of a street that nobody had paved. In the morning its windows were grey, and by
noon they held the whole sky: clouds, a crow, the wires between two poles. People came for the newspapers first, then
for the warmth, and some of them, after a winter or two, for the books. The librarian knew what each would ask before
they asked it. She said that there are only nine questions, and that the rest is spelling. """


@dataclass(frozen=True, slots=True)
class Task:
    """Read these tokens, then write `num_new` more."""

    token_ids: list[int]
    num_new: int


@dataclass(frozen=True, slots=True)
class Speeds:
    """Tokens per second, and the most memory the process ever held, in bytes; 0 where the system does not say."""

    prompt_tokens_per_s: float
    decode_tokens_per_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """A contender that is ready. `card`, `text_ids` (tokens of some ordinary text) and the first token are Kaiwa's."""

    name: str
    load_s: float
    first_token_s: float = 0.0
    card: ModelCard | None = None
    text_ids: tuple[int, ...] = ()


Run = Callable[[Task], tuple[float, float]]
"""Does a task; its prompt and decode speed."""
Make = Callable[[str, int, int], tuple[Loaded, Run]]
"""Loads the model of a path with so many threads and tokens of context."""


class Contender(Closing):
    """One runtime in its child process. Use it in a `with` block, which ends the process."""

    def __init__(self, make: Make, path: Path, *, threads: int, context_length: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_work, args=(theirs, make, str(path), threads, context_length), name="kaiwa-bench", daemon=True
        )
        self._process.start()
        theirs.close()
        try:
            self.loaded: Loaded = self._receive()
        except BaseException:
            self.close()
            raise

    def run(self, task: Task) -> Speeds:
        """Do a task, and wait for it. Raises `KaiwaError` if the process dies of it."""
        self._connection.send(task)
        speeds: Speeds = self._receive()
        return speeds

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.terminate()
        self._process.join()
        self._process.close()

    def _receive(self) -> Any:
        try:
            answer = self._connection.recv()
        except EOFError:
            raise KaiwaError("a runtime that was measured ended without an answer") from None
        if isinstance(answer, BaseException):
            raise answer
        return answer


def installed_llama_cpp() -> Make:
    """The llama.cpp that is installed. Raises `MissingExtra` where there is none."""
    for module, make in (("llama_cpp", load_llama_cpp_python), ("xllamacpp", load_xllamacpp)):
        if importlib.util.find_spec(module):
            return make
    raise MissingExtra("measuring llama.cpp needs xllamacpp or llama-cpp-python", hint="pip install xllamacpp")


def load_kaiwa(path: str, threads: int, context_length: int, *, quantization: str | None = None) -> tuple[Loaded, Run]:
    """Kaiwa itself."""
    from kaiwa.runtime.llm import LLM

    started = time.perf_counter()
    # Without guesses: what they bring hangs on the text, and the peer has none.
    llm = LLM(path, threads=threads, context_length=context_length, quantization=quantization, speculation=False)
    load_s = time.perf_counter() - started
    text_ids = llm.tokenize(TEXT)
    first = _timings(llm, Task(text_ids[:10], 1))

    def run(task: Task) -> tuple[float, float]:
        timings = _timings(llm, task)
        return timings.prompt_tokens_per_s, timings.decode_tokens_per_s

    return Loaded("kaiwa", load_s, first.first_token_s, llm.card, tuple(text_ids)), run


def _timings(llm: Any, task: Task) -> Timings:
    *_, last = llm.stream_text(task.token_ids, end_ids=(), do_sample=False, max_new_tokens=task.num_new)
    timings: Timings = last.timings
    return timings


def load_xllamacpp(path: str, threads: int, context_length: int) -> tuple[Loaded, Run]:
    """llama.cpp as the package xllamacpp has it."""
    xllamacpp = require("xllamacpp", feature="measuring llama.cpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.n_ctx = context_length
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.verbosity = -1
    started = time.perf_counter()
    server = xllamacpp.Server(parameters)
    load_s = time.perf_counter() - started

    def run(task: Task) -> tuple[float, float]:
        request = {"prompt": task.token_ids, "n_predict": task.num_new, "temperature": 0}
        timings = server.handle_completions({**request, "ignore_eos": True, "cache_prompt": False})["timings"]
        return timings["prompt_per_second"], timings["predicted_per_second"]

    return Loaded(_named("xllamacpp"), load_s), run


def load_llama_cpp_python(path: str, threads: int, context_length: int) -> tuple[Loaded, Run]:
    """llama.cpp as the package llama-cpp-python has it."""
    llama_cpp = require("llama_cpp", feature="measuring llama.cpp", package="llama-cpp-python")
    started = time.perf_counter()
    llm = llama_cpp.Llama(path, n_ctx=context_length, n_threads=threads, n_threads_batch=threads, verbose=False)
    load_s = time.perf_counter() - started

    def run(task: Task) -> tuple[float, float]:
        llm.reset()
        started = time.perf_counter()
        llm.eval(task.token_ids)
        token_id = llm.sample(temp=0.0)
        first = time.perf_counter()
        for _ in range(task.num_new - 1):
            llm.eval([token_id])
            token_id = llm.sample(temp=0.0)
        decode_s = time.perf_counter() - first
        decode_speed = (task.num_new - 1) / decode_s if task.num_new > 1 else 0.0
        return len(task.token_ids) / (first - started), decode_speed

    return Loaded(_named("llama-cpp-python"), load_s), run


def _named(package: str) -> str:
    return f"llama.cpp ({package} {importlib.metadata.version(package)})"


def _work(connection: Connection, make: Make, path: str, threads: int, context_length: int) -> None:
    """The life of the child process: load, then one task after the other until the parent is gone."""
    with contextlib.suppress(EOFError, BrokenPipeError):
        try:
            loaded, run = make(path, threads, context_length)
            connection.send(loaded)
            while True:
                task: Task = connection.recv()
                connection.send(Speeds(*run(task), peak_bytes()))
        except (KaiwaError, RuntimeError, ValueError, OSError) as error:
            words = str(error) if isinstance(error, KaiwaError) else f"{type(error).__name__}: {error}"
            connection.send(KaiwaError(words, hint=getattr(error, "hint", "")))
