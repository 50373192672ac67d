"""The default model in a process of its own, alone and in a pool."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

import kaiwa as kw
from kaiwa.errors import EngineCrashed
from kaiwa.events import Progress
from kaiwa.runtime.pool.model_pool import ModelPool
from kaiwa.runtime.process.model_process import ModelProcess, in_child, in_process

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no socket pairs to hand to a process")
QUESTION = "Hey, can you explain gravity to me?"


def test_the_same_words_as_in_this_process_and_again_after_a_crash(model_path: Path) -> None:
    options = {"do_sample": False, "max_new_tokens": 12}
    with kw.LLM(model_path, context_length=1024, threads=2) as llm:
        text = llm.chat(QUESTION, **options).text
    seen: list[Progress] = []
    with ModelProcess(model_path, context_length=1024, threads=2, on_progress=seen.append) as it:
        assert it.card.context_length == 1024
        assert it.chat(QUESTION, **options).text == text
        assert seen
        assert {progress.stage for progress in seen} == {"load"}
        stream = it.stream("Tell me a long story.")
        next(stream)
        os.kill(it.pid, signal.SIGKILL)
        with pytest.raises(EngineCrashed, match="killed by SIGKILL in the middle of an answer"):
            list(stream)
        assert it.chat(QUESTION, **options).text == text


def test_two_models_in_memory_for_one(model_path: Path) -> None:
    async def main() -> None:
        async with ModelPool(memory_bytes=200_000_000) as pool:
            pool.add("child", in_child(model_path, context_length=512))
            pool.add("here", in_process(model_path, context_length=512))
            for name in ("child", "here", "child"):
                async with pool.use(name) as it:
                    assert (await it.achat("Hi", max_new_tokens=2)).text
                    in_memory = [status.name for status in pool.models() if status.num_bytes is not None]
                    assert in_memory == [name]

    asyncio.run(main())
