"""Events on their way: none lost, none out of order, none held for long, and few wakings where many come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiwa.events import Event, Finished, TextDelta
from kaiwa.runtime.outbox import Outbox
from kaiwa.runtime.scheduler import UNNOTICED_S
from small_model import model, says, until

TOKEN = TextDelta("x")


class Reader:
    """Remembers what it was given, and how often."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.sizes: list[int] = []
        self.num_woken = 0
        self.error: BaseException | None = None

    def deliver(self, events: list[Event]) -> None:
        assert self.error is None
        self.events += events
        self.sizes.append(len(events))

    def wake(self) -> None:
        self.num_woken += 1

    def fail(self, error: BaseException) -> None:
        self.error = error

    @property
    def is_over(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], Finished)


def test_what_can_wait_is_held_and_what_cannot_goes() -> None:
    outbox, reader = Outbox(), Reader()
    outbox.put(reader, [TOKEN], is_urgent=False)
    outbox.after_step()
    outbox.before_step(UNNOTICED_S / 1000)
    assert reader.events == []
    outbox.before_step(UNNOTICED_S)
    assert (reader.events, reader.num_woken) == ([TOKEN], 1)
    outbox.put(reader, [TOKEN], is_urgent=False)
    outbox.before_step(None)
    assert len(reader.events) == 2, "nobody knows how long that step takes"


def test_what_is_urgent_takes_all_along() -> None:
    outbox, first, second = Outbox(), Reader(), Reader()
    outbox.put(first, [TOKEN], is_urgent=False)
    outbox.put(second, [TOKEN], is_urgent=True)
    outbox.after_step()
    assert first.sizes == second.sizes == [1]


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.sampled_from([None, 0.0, 0.001, 1.0]))))
def test_every_reader_gets_what_is_its_own_in_order(moves: list[tuple[int, bool, float | None]]) -> None:
    outbox, readers = Outbox(), [Reader() for _ in range(3)]
    put: list[list[Event]] = [[], [], []]
    for number, (place, is_urgent, step_s) in enumerate(moves):
        event = TextDelta(str(number))
        put[place].append(event)
        outbox.put(readers[place], [event], is_urgent=is_urgent)
        outbox.after_step()
        outbox.before_step(step_s)
        if step_s is None or step_s > UNNOTICED_S or is_urgent:
            assert [reader.events for reader in readers] == put
    for reader in readers:
        outbox.fail(reader, ValueError("the end"))
    assert [reader.events for reader in readers] == put


@pytest.mark.parametrize(("delay_s", "is_held"), [(0.0005, True), (UNNOTICED_S * 1.5, False)])
def test_a_fast_model_wakes_its_reader_less_and_a_slow_one_shows_every_token(delay_s: float, is_held: bool) -> None:
    with model(says("x" * 30, delay_s=delay_s)) as llm:
        llm.chat("Hi")  # which teaches it how long a step takes
        stream, reader = llm.stream("Ho"), Reader()
        stream.forward(reader)
        until(lambda: reader.is_over)
    assert "".join(event.text for event in reader.events) == "x" * 30
    assert reader.sizes[0] == 1, "the first token never waits"
    assert (len(reader.sizes) < 20) == is_held
