"""The bad day: answers that are stopped, interrupted, forgotten, raced for, or cut off by an error."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Sequence

import pytest

from kaiwa.engines.engine import Sampled, Slice
from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.errors import KaiwaError, NumericalError
from kaiwa.events import Finished, Queued
from kaiwa.runtime.request import Reader, Request
from kaiwa.runtime.stream import Stream
from small_model import echoes, model, says, until

needs_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")


def test_closing_stops_the_work_within_a_step() -> None:
    engine = says("x" * 1000, delay_s=0.01)
    llm = model(engine)
    stream = llm.stream("Hi")
    for _ in range(5):
        next(stream)
    stream.close()
    assert list(stream) == []
    num_steps = len(engine.steps)
    assert llm.chat("Hi", max_new_tokens=3).text == "xxx"
    assert len(engine.steps) <= num_steps + 4


def test_closing_in_the_middle_of_a_prompt_keeps_what_was_read() -> None:
    engine = echoes(delay_s=0.05)
    llm = model(engine)
    stream = llm.stream("x" * 1500)
    next(stream)
    stream.close()
    reply = llm.chat("x" * 1500, max_new_tokens=3)
    assert reply.text == "xxx"
    first, *others = [sum(len(part.token_ids) for part in step) for step in engine.steps]
    assert reply.usage.cached_tokens >= first
    assert first + sum(others[:-2]) == reply.usage.prompt_tokens, "nothing was read twice"


def test_a_stream_that_is_never_read_holds_up_nobody() -> None:
    llm = model(echoes())
    unread = llm.stream("Hi")
    assert llm.chat("Ho").text == "Ho"
    assert "".join(event.text for event in unread) == "Hi", "it is answered all the same"


def test_a_finished_answer_makes_way_though_its_stream_is_held() -> None:
    llm = model(echoes())
    held = llm.stream("Hi")
    while not isinstance(next(held), Finished):
        pass
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(llm.chat("Ho").text))
    thread.start()
    thread.join(10)
    assert answers == ["Ho"]


def test_cancel_from_another_thread_ends_with_what_there_is() -> None:
    llm = model(says("x" * 1000, delay_s=0.005))
    stream = llm.stream("Hi")
    timer = threading.Timer(0.1, stream.cancel)
    timer.start()
    *pieces, last = stream
    timer.join()
    assert isinstance(last, Finished)
    assert last.finish_reason == "cancelled"
    assert last.usage.generated_tokens == len("".join(event.text for event in pieces))
    assert 0 < last.usage.generated_tokens < 100


def test_cancel_before_the_first_event_and_while_waiting() -> None:
    llm = model(says("abc", delay_s=0.02), max_running=1)
    first, second = llm.stream("Hi"), llm.stream("Ho")
    second.cancel()
    *_, last = second
    assert isinstance(last, Finished)
    assert (last.finish_reason, last.usage.generated_tokens) == ("cancelled", 0)
    assert "".join(event.text for event in first) == "abc"


def test_closing_from_another_thread_while_it_is_read() -> None:
    engine = says("x" * 1000, delay_s=0.005)
    llm = model(engine)
    stream = llm.stream("Hi")
    thread = threading.Thread(target=lambda: list(stream))
    thread.start()
    until(lambda: len(engine.steps) > 2)
    stream.close()
    thread.join(10)
    assert not thread.is_alive()
    assert len(engine.steps) < 100
    assert llm.chat("Hi", max_new_tokens=1).text == "x"


def test_a_second_answer_inside_the_first() -> None:
    llm = model(echoes())
    text = ""
    for event in llm.stream("abc"):
        text += event.text
        if event.text:
            inner = "".join(inner_event.text for inner_event in llm.stream(f"inside {event.text}"))
            assert inner == f"inside {event.text}"
            assert llm.chat("deeper").text == "deeper"
    assert text == "abc"


def test_a_forgotten_stream_makes_way() -> None:
    llm = model(echoes())
    stream = llm.stream("Hello")
    next(stream)
    del stream
    other_thread_answers(llm)

    stream = llm.stream("Hello")
    next(stream)
    cycle = [stream]
    cycle.append(cycle)  # type: ignore[arg-type]
    del stream, cycle
    gc.collect()
    other_thread_answers(llm)


def other_thread_answers(llm: object) -> None:
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(llm.chat("Other").text))  # type: ignore[attr-defined]
    thread.start()
    thread.join(10)
    assert answers == ["Other"]


def test_many_threads_at_once_each_get_their_own_answer() -> None:
    engine = echoes(context_length=2000)
    llm = model(engine)
    wrong: list[str] = []

    def ask(name: str) -> None:
        for number in range(8):
            question = f"{name} asks {number}"
            answer = "".join(event.text for event in llm.stream(question))
            if answer != question:
                wrong.append(f"{question} → {answer}")

    threads = [threading.Thread(target=ask, args=(f"thread {number}",)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert engine.num_free_tokens() >= 0


def test_first_token_time_includes_the_wait() -> None:
    llm = model(says("x" * 20, delay_s=0.01), max_running=1)
    first, second = llm.stream("Hi"), llm.stream("Ho")
    waited = [event for event in second if isinstance(event, Queued | Finished)]
    assert waited[0] == Queued(1)
    assert isinstance(waited[-1], Finished)
    assert waited[-1].timings.first_token_s > 0.2
    assert waited[-1].timings.prompt_s < 0.2
    list(first)


class Breaking(ScriptedEngine):
    """Echoes, but raises in the n-th step: before it has computed, or after."""

    def __init__(self, nth: int, *, is_after: bool) -> None:
        engine = echoes()
        super().__init__(engine._answer, end_id=engine._end_id, vocab_size=258)
        self._left, self._is_after = nth, is_after

    def step(self, batch: Sequence[Slice]) -> list[Sampled | None]:
        self._left -= 1
        if self._left == 0 and not self._is_after:
            raise NumericalError("the model computed numbers that are no answer")
        sampled = super().step(batch)
        if self._left == 0:
            raise NumericalError("the model computed numbers that are no answer")
        return sampled


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("nth", [1, 2, 5, 40])
def test_an_error_in_a_step_leaves_the_model_usable(nth: int, is_after: bool) -> None:
    engine = Breaking(nth, is_after=is_after)
    llm = model(engine)
    question = "x" * 1500
    with pytest.raises(NumericalError):
        list(llm.stream(question))
    assert len(engine._tokens) == 0
    reply = llm.chat(question)
    assert reply.text == question
    assert reply.usage.cached_tokens == 0, "a sequence that failed is not trusted"
    assert len(engine._tokens) == 1


@needs_timers
def test_an_interrupt_from_the_keyboard_in_a_real_step() -> None:
    llm = model(echoes(delay_s=0.01))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        for after_s in (0.004, 0.015, 0.033, 0.05):
            signal.setitimer(signal.ITIMER_REAL, after_s)
            with pytest.raises(KeyboardInterrupt):
                llm.chat("A question of some length")
            assert llm.chat("Short").text == "Short"
    finally:
        signal.signal(signal.SIGALRM, previous)


@needs_timers
def test_a_signal_handler_may_cancel() -> None:
    llm = model(says("x" * 1000, delay_s=0.005))
    stream = llm.stream("Hi")
    previous = signal.signal(signal.SIGALRM, lambda *_: stream.cancel())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        *_, last = stream
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert isinstance(last, Finished)
    assert last.finish_reason == "cancelled"


def test_closing_the_model_wakes_who_waits() -> None:
    llm = model(says("abc" * 500, delay_s=0.01), max_running=1)
    first = llm.stream("Hi")
    next(first)
    errors: list[KaiwaError] = []

    def wait() -> None:
        try:
            llm.chat("Ho")
        except KaiwaError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: llm._loop.num_waiting == 1)
    llm.close()
    thread.join(10)
    assert "was closed" in str(errors[0])
    with pytest.raises(KaiwaError, match="was closed"):
        list(first)


def test_a_request_that_is_left_before_it_is_handed_over_harms_nobody() -> None:
    llm = model(says("Hi"))

    def new_request(reader: Reader) -> Request:
        request = llm._ask("Hi")(reader)
        llm._loop.cancel(request)
        return request

    assert "".join(event.text for event in Stream(llm._loop, new_request)) == "Hi"
    assert llm.chat("Hi").text == "Hi", "the engine's thread lives on"
