"""Many requests at once: one batch, each its own answer, a shared prompt read once, and errors kept apart."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaiwa.engines.engine import Sampled, Slice
from kaiwa.engines.scripted import ScriptedEngine
from kaiwa.errors import Busy, KaiwaError, NumericalError
from kaiwa.events import Event, Finished, PromptProgress, Queued, TextDelta
from kaiwa.runtime.answer_text import AnswerText
from kaiwa.runtime.request import Prompt, Reader, Request
from kaiwa.runtime.stream import Stream, collect
from kaiwa.sampling import Sampling
from small_model import END, echoes, model, says, scripted, tokenizer, until


def read(events: Iterable[Event]) -> str:
    return "".join(event.text for event in events)


def test_answers_are_written_side_by_side() -> None:
    engine = says("x" * 50, delay_s=0.005)
    llm = model(engine)
    streams = [llm.stream(f"question {number}", client=str(number)) for number in range(8)]
    assert [read(stream) for stream in streams] == ["x" * 50] * 8
    assert max(len(step) for step in engine.steps) == 8
    assert len(engine.steps) < 80


def test_requests_join_and_leave_at_any_step() -> None:
    engine = says("x" * 200, delay_s=0.002)
    llm = model(engine)
    first = llm.stream("first")
    next(first)
    for number in range(5):
        assert llm.chat(f"another {number}", max_new_tokens=5).text == "xxxxx"
    assert first._request.generated_tokens > 25
    assert len(read(first)) < 200


def test_a_prompt_that_many_ask_at_once_is_read_once() -> None:
    engine = echoes()
    llm = model(engine)
    question = "What do you say to this? " * 40
    streams = [llm.stream(question) for _ in range(6)]
    replies = [collect(stream) for stream in streams]
    assert {reply.text for reply in replies} == {question}
    num_prompt = replies[0].usage.prompt_tokens
    assert sorted(reply.usage.cached_tokens for reply in replies) == [0] + [num_prompt - 1] * 5
    num_read = sum(len(part.token_ids) for step in engine.steps for part in step)
    num_written = sum(reply.usage.generated_tokens - 1 for reply in replies)
    assert num_read == num_prompt + 5 + num_written


def test_a_long_common_beginning_is_read_once_too() -> None:
    llm = model(echoes())
    system = {"role": "system", "content": "You are an assistant. " * 50}
    asked = [[system, {"role": "user", "content": f"question {number}"}] for number in range(4)]
    streams = [llm.stream(messages) for messages in asked]
    cached = [collect(stream).usage.cached_tokens for stream in streams]
    assert cached[0] == 0
    assert min(cached[1:]) > 1100


def test_who_waits_for_a_prompt_reads_it_where_the_other_stops() -> None:
    engine = echoes(delay_s=0.05)
    llm = model(engine)
    question = "x" * 2000
    first, second = (llm.stream(question, max_new_tokens=3) for _ in range(2))
    next(first)
    first.close()
    reply = collect(second)
    assert reply.text == "xxx"
    assert 0 < reply.usage.cached_tokens < reply.usage.prompt_tokens - 1


def test_other_clients_see_nothing_of_a_prompt() -> None:
    llm = model(echoes())
    question = "a secret " * 50
    streams = [llm.stream(question, client=client) for client in ("a", "b")]
    assert [collect(stream).usage.cached_tokens for stream in streams] == [0, 0]


def test_a_memory_that_is_too_small_makes_some_wait_and_changes_no_answer() -> None:
    engine = echoes(context_length=400, cache_tokens=450)
    llm = model(engine)
    questions = [f"{number} says " + "x" * 100 for number in range(10)]
    streams = [llm.stream(question, client=str(number % 3)) for number, question in enumerate(questions)]
    assert [read(stream) for stream in streams] == questions
    assert engine.num_free_tokens() >= 0


def test_an_answer_that_paused_goes_on_where_it_was() -> None:
    engine = says("0123456789" * 30, context_length=400, cache_tokens=450, delay_s=0.001)
    llm = model(engine)
    streams = [llm.stream("a"), llm.stream("b")]
    replies = [collect(stream) for stream in streams]
    assert [reply.text for reply in replies] == ["0123456789" * 30] * 2
    num_computed = sum(len(part.token_ids) for step in engine.steps for part in step)
    assert num_computed > sum(reply.usage.total_tokens for reply in replies) + 100, "one was read again"


def test_the_queue_has_an_end_and_says_where_one_stands() -> None:
    llm = model(says("x" * 2000, delay_s=0.005), max_running=1, max_waiting=2)
    streams = [llm.stream(str(number)) for number in range(1)]
    until(lambda: llm._loop.num_waiting == 0)
    streams += [llm.stream(str(number)) for number in range(2)]
    with pytest.raises(Busy, match="2 requests wait already") as caught:
        llm.stream("one more")
    assert caught.value.place == 3
    assert caught.value.retry_after_s >= 0
    assert next(streams[2]) == Queued(2)
    streams[1].close()
    assert next(streams[2]) == Queued(1)
    streams[0].cancel()
    assert isinstance(next(streams[2]), TextDelta)
    for stream in streams:
        stream.close()


class Poisoned(ScriptedEngine):
    """Computes no numbers for a sequence that has a certain token."""

    def step(self, batch: Sequence[Slice]) -> list[Sampled | None]:
        poison = ord("!")
        held = [part for part in batch if poison in self._tokens[part.sequence] or poison in part.token_ids]
        if held:
            raise NumericalError("the model computed numbers that are no answer")
        return super().step(batch)


def test_an_error_fails_only_the_request_that_it_is_of() -> None:
    plain = echoes()
    engine = Poisoned(plain._answer, end_id=END, vocab_size=258, delay_s=0.001)
    llm = model(engine)
    questions = ["one " * 20, "two! " * 20, "three " * 20]
    streams = [llm.stream(question, client=question) for question in questions]
    answers = []
    for stream in streams:
        try:
            answers.append(read(stream))
        except NumericalError:
            answers.append("failed")
    assert answers == [questions[0], "failed", questions[2]]
    assert len(engine._tokens) == 2, "what failed is not kept"


class Numberless(ScriptedEngine):
    """As `Poisoned`, but the others in the step get their tokens."""

    def step(self, batch: Sequence[Slice]) -> list[Sampled | None]:
        problem = Sampled((), error=NumericalError("the model computed numbers that are no answer"))
        return [
            problem if sampled is not None and ord("!") in self._tokens[part.sequence] else sampled
            for part, sampled in zip(batch, super().step(batch), strict=True)
        ]


def test_an_engine_that_says_whose_numbers_are_none_computes_nothing_twice() -> None:
    engine = Numberless(echoes()._answer, end_id=END, vocab_size=258, delay_s=0.001)
    llm = model(engine)
    streams = [llm.stream(question, client=question) for question in ("one " * 20, "two! " * 20)]
    assert read(streams[0]) == "one " * 20
    with pytest.raises(NumericalError):
        read(streams[1])
    num_computed = sum(len(part.token_ids) for step in engine.steps for part in step)
    usages = [len(stream._request.prompt.token_ids) for stream in streams]
    assert num_computed == sum(usages) + len("one " * 20)
    assert len(engine._tokens) == 1, "what failed is not kept"


class Torn:
    """A constraint that breaks after some tokens."""

    is_done = False
    is_free = True

    def __init__(self, left: int) -> None:
        self.left = left

    def allowed(self) -> bytes | None:
        if not self.left:
            raise ValueError("the grammar is torn")
        return None

    def num_free(self, token_ids: Sequence[int]) -> int:
        return len(token_ids)

    def forced(self) -> Sequence[int]:
        return ()

    def push(self, token_id: int) -> None:
        self.left -= 1


def test_a_grammar_that_breaks_takes_no_other_answer_along() -> None:
    llm = model(says("abcdefgh", delay_s=0.002))

    def torn(reader: Reader) -> Request:
        text = AnswerText(tokenizer(), end_ids=[END])
        prompt = Prompt([1, 2, 3], Sampling(seed=0), time.perf_counter())
        return Request(prompt, text, reader, context_length=100, constraint=Torn(3))

    other, broken = llm.stream("Hi"), Stream(llm._loop, torn)
    with pytest.raises(ValueError, match="torn"):
        list(broken)
    assert read(other) == "abcdefgh"


def test_logprobs_come_with_the_text_that_they_are_of() -> None:
    llm = model(says("日本 END more"))
    *pieces, last = llm.stream("Say", num_logprobs=1, stop="END")
    assert isinstance(last, Finished)
    deltas = [piece for piece in pieces if isinstance(piece, TextDelta)]
    assert b"".join(each.token for delta in deltas for each in delta.logprobs) == "日本 ".encode()
    assert deltas[0].text == "日"
    assert [each.token_id for each in deltas[0].logprobs] == list("日".encode())
    assert deltas[0].logprobs[0].best[0].logprob == deltas[0].logprobs[0].logprob == 0.0
    assert all(not piece.logprobs for piece in llm.stream("Say") if isinstance(piece, TextDelta))


def test_idle_is_idle_and_work_wakes_it() -> None:
    llm = model(says("abc"))
    assert llm.chat("Hi").text == "abc"
    until(lambda: "kaiwa-engine" not in {thread.name for thread in threading.enumerate()})
    started = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - started < 0.05
    assert llm.chat("Hi").text == "abc"


def test_closing_ends_all_with_an_error() -> None:
    llm = model(says("x" * 5000, delay_s=0.01), max_running=2)
    streams = [llm.stream(str(number)) for number in range(4)]
    next(streams[0])
    llm.close()
    for stream in streams:
        with pytest.raises(KaiwaError, match="was closed"):
            list(stream)


@settings(deadline=None, max_examples=25)
@given(
    questions=st.lists(st.tuples(st.text("ab", min_size=1, max_size=120), st.sampled_from("xyz")), max_size=12),
    cache_tokens=st.integers(200, 600),
    cancelled=st.sets(st.integers(0, 11)),
)
def test_whatever_is_asked_everyone_gets_their_own_answer(
    questions: list[tuple[str, str]], cache_tokens: int, cancelled: set[int]
) -> None:
    engine = echoes(context_length=200, cache_tokens=cache_tokens)
    with model(engine, max_running=4) as llm:
        streams = [llm.stream(question, client=client, max_new_tokens=30) for question, client in questions]
        for number in cancelled & set(range(len(streams))):
            streams[number].cancel()
        for (question, _), stream in zip(questions, streams, strict=True):
            events: list[Event] = list(stream)
            assert isinstance(events[-1], Finished)
            text = read(events)
            assert question.startswith(text)
            assert events[-1].finish_reason == "cancelled" or text == question[:30]
            progress = [event.read_tokens for event in events if isinstance(event, PromptProgress)]
            assert progress == sorted(set(progress))
        assert not llm._loop.is_busy
        assert engine.num_free_tokens() >= 0


def test_two_threads_and_two_event_loops_share_one_model() -> None:
    import asyncio

    llm = model(scripted(lambda ids: list(b"ok")))
    answers: list[str] = []

    async def ask() -> None:
        answers.extend(reply.text for reply in await asyncio.gather(*(llm.achat("Hi") for _ in range(3))))

    threads = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(2)]
    threads += [threading.Thread(target=lambda: answers.append(llm.chat("Hi").text)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert answers == ["ok"] * 8


def test_whoever_leaves_before_being_heard_changes_nothing() -> None:
    import asyncio

    llm = model(says("x" * 30))

    async def leave_at_once() -> None:
        for _ in range(50):
            task = asyncio.create_task(llm.achat("Hi"))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(leave_at_once())
    assert llm.chat("Hi").text == "x" * 30
