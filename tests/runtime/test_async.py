"""The async twins: the event loop never waits for an engine, and leaving stops the work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from kaiwa.errors import ContextOverflow, InvalidMessages
from kaiwa.events import Finished
from small_model import echoes, model, says, scripted, until


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main, debug=False)


def test_the_same_answers() -> None:
    async def main() -> None:
        llm = model(echoes())
        reply = await llm.achat("Hello")
        assert (reply.text, reply.finish_reason) == ("Hello", "stop")
        events = [event async for event in llm.astream("Hello")]
        assert "".join(event.text for event in events) == "Hello"
        assert isinstance(events[-1], Finished)

    run(main())


def test_the_loop_is_never_held_up() -> None:
    async def main() -> None:
        llm = model(says("x" * 30, delay_s=0.03), max_running=1)
        lags: list[float] = []

        async def watch() -> None:
            while True:
                before = time.perf_counter()
                await asyncio.sleep(0.002)
                lags.append(time.perf_counter() - before - 0.002)

        watcher = asyncio.create_task(watch())
        replies = await asyncio.gather(llm.achat("Hi", max_new_tokens=10), llm.achat("Ho", max_new_tokens=10))
        watcher.cancel()
        assert [len(reply.text) for reply in replies] == [10, 10]
        assert len(lags) > 100
        assert sorted(lags)[len(lags) * 95 // 100] < 0.02, "a step takes 0.03 s"

    run(main())


def test_many_tasks_at_once_each_get_their_own_answer() -> None:
    async def main() -> None:
        llm = model(echoes())
        questions = [f"question {number}" for number in range(30)]
        replies = await asyncio.gather(*(llm.achat(question) for question in questions))
        assert [reply.text for reply in replies] == questions

    run(main())


def test_errors_arrive_before_the_first_event() -> None:
    async def main() -> None:
        llm = model(says("x", context_length=40))
        with pytest.raises(ContextOverflow):
            await llm.achat("x" * 100)
        with pytest.raises(InvalidMessages):
            await anext(aiter(llm.astream([])))

    run(main())


@pytest.mark.parametrize("question", ["short", "x" * 20_000])
def test_cancelling_the_task_stops_the_engine_within_a_step(question: str) -> None:
    engine = says("x" * 5000, delay_s=0.1, context_length=30_000)
    llm = model(engine)

    async def main() -> None:
        task = asyncio.create_task(llm.achat(question))
        while len(engine.steps) < 3:
            await asyncio.sleep(0.001)
        before = len(engine.steps)
        task.cancel()
        started = time.perf_counter()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.perf_counter() - started < 0.1, "leaving does not wait for the step"
        await asyncio.sleep(0.3)
        assert len(engine.steps) <= before + 1
        assert (await llm.achat("again", max_new_tokens=2)).text == "xx"

    run(main())


def test_a_timeout_and_a_closed_generator_stop_the_work() -> None:
    engine = says("x" * 5000, delay_s=0.01)
    llm = model(engine)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(llm.achat("Hi"), 0.05)
        events = llm.astream("Hi")
        await anext(events)
        await events.aclose()

    run(main())
    until(lambda: not llm._loop.is_busy)
    assert len(engine.steps) < 20


def test_cancelling_while_it_waits_gives_up_the_place() -> None:
    engine = says("x" * 10, delay_s=0.01)
    llm = model(engine, max_running=1)

    async def main() -> None:
        first = asyncio.create_task(llm.achat("first"))
        await asyncio.sleep(0.02)
        second = asyncio.create_task(llm.achat("second"))
        await asyncio.sleep(0.02)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert (await first).text == "x" * 10
        assert len(engine.steps) == 11

    run(main())


def test_a_slow_reader_holds_up_nobody() -> None:
    llm = model(echoes())

    async def main() -> None:
        slow = llm.astream("slow reader")
        text = (await anext(slow)).text
        assert (await asyncio.wait_for(llm.achat("fast"), 5)).text == "fast"
        text += "".join([event.text async for event in slow])
        assert text == "slow reader"

    run(main())


def test_an_event_loop_that_ends_leaves_no_work_behind() -> None:
    engine = says("x" * 5000, delay_s=0.005)
    llm = model(engine)

    async def main() -> None:
        asyncio.create_task(llm.achat("Hi"))  # noqa: RUF006  (asyncio.run cancels it)
        while not engine.steps:
            await asyncio.sleep(0.001)

    run(main())
    until(lambda: not llm._loop.is_busy)
    assert len(engine.steps) < 100


def test_text_is_continued_and_embedded_without_waiting() -> None:
    async def main() -> None:
        llm = model(scripted(lambda ids: list(ids)))
        events = [event async for event in llm.astream_text("abc")]
        assert "".join(event.text for event in events) == "abc"
        assert await llm.aembed(["abc"]) == llm.embed(["abc"])

    run(main())
