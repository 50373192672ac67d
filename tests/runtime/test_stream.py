"""A stream whose events somebody else wants: all of them, in order, whenever the wish comes."""

from __future__ import annotations

import threading
import time

import pytest

from kaiwa.events import Event, Finished
from small_model import model, says, until


class Collector:
    """A reader that keeps what it gets."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.errors: list[BaseException] = []
        self.threads: set[str] = set()

    def deliver(self, events: list[Event]) -> None:
        self.events += events
        self.threads.add(threading.current_thread().name)

    def wake(self) -> None:
        pass  # whoever reads looks by itself

    def fail(self, error: BaseException) -> None:
        self.errors.append(error)

    @property
    def is_over(self) -> bool:
        return bool(self.errors) or any(isinstance(event, Finished) for event in self.events)


@pytest.mark.parametrize("after_s", [0.0, 0.03, 0.5])
def test_a_forwarded_stream_loses_nothing(after_s: float) -> None:
    with model(says("An apple falls.", delay_s=0.005)) as llm:
        stream, reader = llm.stream("Why?"), Collector()
        time.sleep(after_s)
        stream.forward(reader)
        until(lambda: reader.is_over)
    assert "".join(event.text for event in reader.events) == "An apple falls."
    assert isinstance(reader.events[-1], Finished)


def test_it_is_called_in_the_engines_thread_and_hears_of_the_end() -> None:
    llm = model(says("x" * 1000, delay_s=0.005))
    stream, reader = llm.stream("Why?"), Collector()
    stream.forward(reader)
    until(lambda: len(reader.events) > 3)
    stream.cancel()
    until(lambda: reader.is_over)
    assert "kaiwa-engine" in reader.threads
    second, failed = llm.stream("Why?"), Collector()
    second.forward(failed)
    llm.close()
    until(lambda: failed.is_over)
    assert "the model was closed" in str(failed.errors[0])
