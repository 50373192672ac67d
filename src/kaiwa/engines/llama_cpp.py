"""GGUF models of families that the built-in engine does not know: llama.cpp, in a child process."""

from __future__ import annotations

import importlib.metadata
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from kaiwa.chat.embedding import Embedding
from kaiwa.chat.model import ModelCard
from kaiwa.chat.remote import RemoteModel
from kaiwa.chat.remote_stream import Work
from kaiwa.chat.remote_vectors import Texts
from kaiwa.errors import EngineCrashed, InvalidOption, RemoteFailed, UnsupportedModel
from kaiwa.events import Progress
from kaiwa.extras import require
from kaiwa.messages import Conversation
from kaiwa.text.answers.answer_format import no_place_for_tools
from kaiwa.weights import gguf

_COMMAND = (sys.executable, "-m", "kaiwa.engines.llama_cpp_child")
_MAX_SHOWN_LINES = 5
_PATIENCE_S = 10.0
_NOTICED_AFTER_S = 0.2
"""How much later than its connections the end of a process may be seen."""
_TEMPLATE_KEY = "tokenizer.chat_template"


class LlamaCppModel(RemoteModel):
    """A GGUF file on llama.cpp's own server, in a child process that ends with this object or this process.

    The server listens on this machine only, on a port that the system chooses, and answers nobody without a random key.
    `context_length` is by default the model's own; it is shared by `max_running` answers at once.

    Raises `MissingExtra` without the package xllamacpp, `UnsupportedModel` where llama.cpp cannot load the file either,
    `InvalidOption` for options that llama.cpp has no equal of. A process that ends by itself is `EngineCrashed`.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str = "",
        threads: int | None = None,
        context_length: int | None = None,
        quantization: str | None = None,
        kv_dtype: str | None = None,
        max_running: int | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        **options: Any,
    ) -> None:
        require("xllamacpp", feature="the llama.cpp engine", extra="llama-cpp")
        for option, value in (("quantization", quantization), ("kv_dtype", kv_dtype)):
            if value is not None:
                raise InvalidOption(
                    f"{option}={value!r} is impossible with llama.cpp", hint=f"leave {option} out: GGUF has its numbers"
                )
        if on_progress is not None:
            on_progress(Progress("load", 0, path.stat().st_size))
        self._shown_name = name or path.name
        self._metadata = gguf.read_metadata(path)
        self._num_bytes = path.stat().st_size
        key = secrets.token_urlsafe(32)
        settings = {
            "path": str(path),
            "key": key,
            "context_length": context_length,
            "threads": threads,
            "max_running": max_running or 1,
        }
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the child)
        self._process = _start(settings, self._log)
        try:
            super().__init__(_address(self._process, path, self._log), api_key=key, max_retries=0, **options)
        except BaseException:
            self._end()
            raise

    @property
    def card(self) -> ModelCard:
        """What llama.cpp says of the model; its memory is that of the file."""
        version = importlib.metadata.version("xllamacpp")
        return replace(
            super().card,
            name=self._shown_name,
            family=str(self._metadata.get("general.architecture", "")),
            engine=f"llama.cpp (xllamacpp {version})",
            weights_bytes=self._num_bytes,
        )

    @property
    def chat_template(self) -> str | None:
        """The source of the model's chat template, or None where it has none."""
        return self._metadata.get(_TEMPLATE_KEY)

    def embed(self, texts: Texts, *, pooling: str | None = None) -> list[Embedding]:
        """Raises `UnsupportedModel`: one server of llama.cpp's answers, or makes vectors."""
        raise _no_vectors()

    async def aembed(self, texts: Texts, *, pooling: str | None = None) -> list[Embedding]:
        """As `embed`."""
        raise _no_vectors()

    def close(self) -> None:
        """Close the connections and end the process, which gives its memory back."""
        super().close()
        self._end()

    def __repr__(self) -> str:
        return f"<LlamaCppModel {self._shown_name}>"

    def _chat(self, messages: Conversation, options: Mapping[str, Any]) -> Work:
        if options.get("tools") and "tools" not in (self.chat_template or ""):
            raise no_place_for_tools()  # llama.cpp would leave them out without a word
        return super()._chat(messages, options)

    def _explained(self, error: BaseException) -> BaseException:
        if not isinstance(error, RemoteFailed):
            return error
        try:
            exit_code = self._process.wait(_NOTICED_AFTER_S)
        except subprocess.TimeoutExpired:
            return error
        return EngineCrashed(
            f"llama.cpp's process for {self._shown_name} ended by itself (exit code {exit_code})",
            hint="load the model again; with less memory free than it needs, a shorter context_length helps",
            exit_code=exit_code,
        )

    def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:  # in the midst of C++
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()


def _no_vectors() -> UnsupportedModel:
    return UnsupportedModel(
        "a model on llama.cpp answers, and makes no vectors beside",
        hint="make them with a model whose family the built-in engine knows",
    )


def _start(settings: dict[str, Any], log: IO[bytes]) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, start_new_session=True
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(settings).encode() + b"\n")
    process.stdin.flush()
    return process


def _address(process: subprocess.Popen[bytes], path: Path, log: IO[bytes]) -> str:
    """What the child says when its server listens. Raises `UnsupportedModel` where it ends before."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(b"http://127.0.0.1:"):
            return f"{line.decode().strip()}/v1"
    log.seek(0)
    said = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()][-_MAX_SHOWN_LINES:]
    raise UnsupportedModel(
        f"llama.cpp cannot load {path}" + "".join(f"\n  {line.strip()}" for line in said),
        hint="a newer xllamacpp may know the family",
    )
