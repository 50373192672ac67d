"""The scheduler: nothing is lost, nobody starves, no budget is exceeded, and answers flow while prompts are read."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kaiwa.runtime.job import Job, State
from kaiwa.runtime.scheduler import MAX_STEP_S, MIN_PIECE, Plan, Scheduler


class Engine:
    """An engine as far as the scheduler can tell: memory, time by tokens, and answers of known lengths."""

    def __init__(self, *, memory: int = 10_000, max_running: int = 8, token_s: float = 0.001) -> None:
        self.scheduler: Scheduler[Job] = Scheduler(max_step_tokens=256, max_running=max_running)
        self.memory = memory
        self.token_s = token_s
        self.answers: dict[Job, int] = {}
        self.finished: list[Job] = []
        self.gaps: dict[Job, list[float]] = {}

    def ask(self, num_tokens: int, answer: int, client: str = "") -> Job:
        job = Job(num_tokens, client)
        self.answers[job] = answer
        self.scheduler.add(job)
        return job

    def free(self) -> int:
        return self.memory - sum(job.num_computed for job in self.scheduler.running)

    def seconds(self, num_tokens: int) -> float:
        return 0.004 + self.token_s * num_tokens

    def step(self) -> Plan[Job]:
        while job := self.scheduler.next_to_begin(self.free()):
            self.scheduler.begin(job, 0)
        free = self.free()
        plan = self.scheduler.plan(free)
        assert plan.num_tokens <= self.free() or len(self.scheduler.running) == 1
        seconds = self.seconds(plan.num_tokens)
        if plan.shares:
            self.scheduler.times.observe(plan.num_tokens, seconds)
        for share in plan.shares:
            self.take(share.job, share.num_tokens, seconds)
        return plan

    def take(self, job: Job, num_tokens: int, seconds: float) -> None:
        assert 1 <= num_tokens <= job.num_unread
        was_writing = job.state is State.WRITING
        sampled = num_tokens == job.num_unread
        self.scheduler.advance(job, num_read=num_tokens, num_sampled=int(sampled))
        if sampled:
            self.answers[job] -= 1
            if was_writing:
                self.gaps.setdefault(job, []).append(seconds)
        if self.answers[job] == 0:
            self.scheduler.finish(job)
            self.finished.append(job)

    def run(self, most: int = 10_000) -> None:
        for _ in range(most):
            if not self.scheduler.running and not self.scheduler.num_waiting:
                return
            self.step()
        raise AssertionError("it never ends")


def test_a_prompt_is_read_in_pieces_and_its_answer_token_by_token() -> None:
    engine = Engine()
    engine.ask(500, 3)
    sizes = []
    while engine.scheduler.num_waiting or engine.scheduler.running:
        sizes.append(engine.step().num_tokens)
    assert sum(sizes[:-2]) == 500
    assert sizes[-2:] == [1, 1]
    assert all(engine.seconds(size) <= MAX_STEP_S * 1.05 for size in sizes)


def test_answers_flow_while_a_long_prompt_is_read() -> None:
    engine = Engine()
    writers = [engine.ask(10, 2000, f"client {number}") for number in range(3)]
    for _ in range(20):
        engine.step()
    usual_s = engine.seconds(3)
    long = engine.ask(4000, 1, "another")
    for job in writers:
        engine.gaps[job].clear()
    steps = 0
    while long.state is not State.FINISHED:
        engine.step()
        steps += 1
    for job in writers:
        assert len(engine.gaps[job]) == steps, "every step goes on with every answer"
        assert max(engine.gaps[job]) <= 3 * usual_s
    assert sum(engine.gaps[writers[0]]) < 4000 * engine.token_s * 3, "and the prompt is read, too"


def test_a_slow_machine_still_reads() -> None:
    engine = Engine(token_s=1.0)
    engine.ask(64, 1)
    sizes = [engine.step().num_tokens for _ in range(2)]
    assert sizes[0] == 64, "nothing is known yet"
    engine.ask(64, 1)
    assert engine.step().num_tokens == MIN_PIECE


def test_a_client_with_many_prompts_does_not_hold_up_another() -> None:
    engine = Engine(max_running=4)
    greedy = [engine.ask(400, 20, "greedy") for _ in range(30)]
    for _ in range(4):
        engine.step()
    modest = engine.ask(50, 1, "modest")
    steps = 0
    while modest.state is not State.FINISHED:
        engine.step()
        steps += 1
    assert steps < 60
    assert sum(job.state is State.FINISHED for job in greedy) < 6
    engine.run()
    assert [job for job in engine.finished if job.client == "greedy"] == greedy, "first come, first served"


def test_two_clients_read_at_the_same_pace() -> None:
    engine = Engine(memory=100_000)
    a, b = engine.ask(4000, 1, "a"), engine.ask(4000, 1, "b")
    while engine.scheduler.num_waiting or a.state is b.state is State.READING:
        engine.step()
        assert abs(a.num_computed - b.num_computed) <= 256


def test_who_waited_long_saves_nothing_up() -> None:
    engine = Engine(memory=100_000)
    first = engine.ask(1500, 5000, "old")
    while first.state is not State.WRITING:
        engine.step()
    new, rival = engine.ask(2000, 1, "new"), engine.ask(2000, 1, "old")
    while engine.scheduler.num_waiting or new.state is rival.state is State.READING:
        engine.step()
    assert rival.num_computed > 1000, "what was had before the other came does not count"


def test_the_youngest_pauses_where_memory_ends_and_nothing_is_lost() -> None:
    engine = Engine(memory=300)
    old, young = engine.ask(20, 220, "a"), engine.ask(20, 220, "b")
    paused: list[Job] = []
    for _ in range(2000):
        paused += engine.step().paused
        if not engine.scheduler.running and not engine.scheduler.num_waiting:
            break
    assert paused == [young]
    assert engine.finished == [old, young]


def test_a_long_prompt_is_not_overtaken_for_ever() -> None:
    engine = Engine(memory=1000)
    engine.ask(100, 30, "a")
    engine.step()
    long = engine.ask(900, 1, "b")
    for _ in range(100):
        engine.ask(60, 10, "c")
        engine.step()
        if long.state is State.FINISHED:
            return
    raise AssertionError("it starves")


def test_a_held_job_lets_others_go_first() -> None:
    scheduler: Scheduler[Job] = Scheduler(max_step_tokens=256, max_running=4)
    held, behind = Job(10), Job(10)
    scheduler.add(held)
    scheduler.add(behind)
    assert scheduler.next_to_begin(1000, lambda job: job is held) is behind
    assert scheduler.next_to_begin(1000) is held


def test_waiting_jobs_know_their_place() -> None:
    scheduler: Scheduler[Job] = Scheduler(max_step_tokens=256, max_running=4)
    jobs = [Job(10, client) for client in "aaab"]
    for job in jobs:
        scheduler.add(job)
    assert scheduler.waiting() == [jobs[0], jobs[3], jobs[1], jobs[2]]


def test_impossible_changes_of_state_are_refused() -> None:
    job = Job(10)
    with pytest.raises(RuntimeError, match="waiting for its turn cannot be writing"):
        job.become(State.WRITING)


class AnyTraffic(RuleBasedStateMachine):
    """Requests come, are cancelled, go back and fail in any order, in a memory that is always tight."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine(memory=400, max_running=5)
        self.gone: set[Job] = set()

    @rule(num_tokens=st.integers(1, 390), answer=st.integers(1, 40), client=st.sampled_from("abc"))
    def ask(self, num_tokens: int, answer: int, client: str) -> None:
        self.engine.ask(num_tokens, min(answer, 401 - num_tokens), client)

    @rule(times=st.integers(1, 20))
    def step(self, times: int) -> None:
        for _ in range(times):
            self.engine.step()

    def unfinished(self) -> list[Job]:
        return [job for job in self.engine.answers if job.state is not State.FINISHED]

    @precondition(lambda self: self.unfinished())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.unfinished()))
        self.engine.scheduler.finish(job)
        self.gone.add(job)

    @precondition(lambda self: self.engine.scheduler.running)
    @rule(data=st.data())
    def go_back(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.engine.scheduler.running))
        self.engine.scheduler.rewind(job, data.draw(st.integers(0, job.num_computed)))

    @invariant()
    def everything_is_somewhere(self) -> None:
        scheduler = self.engine.scheduler
        places = [*scheduler.running, *scheduler.waiting()]
        assert len(places) == len(set(places)) == scheduler.num_waiting + len(scheduler.running)
        assert set(places) == set(self.unfinished())
        assert len(scheduler.running) <= 5

    @invariant()
    def the_memory_is_enough(self) -> None:
        assert self.engine.free() >= 0

    def teardown(self) -> None:
        self.engine.run()
        assert set(self.engine.finished) | self.gone == set(self.engine.answers)
        assert all(self.engine.answers[job] == 0 for job in self.engine.finished)
        assert self.engine.free() == self.engine.memory
        assert not self.engine.scheduler._queue._num_jobs


TestAnyTraffic = AnyTraffic.TestCase
TestAnyTraffic.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
