"""The rules of a pool: nobody in use is unloaded, no limit is exceeded, everybody gets a turn."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kaiwa.errors import OutOfMemory
from kaiwa.runtime.pool.shelf import Place, Shelf, State, Work


def shelf(*names: str, max_models: int | None = None, memory_bytes: int | None = None) -> Shelf:
    made = Shelf(max_models, memory_bytes)
    for name in names:
        made.places[name] = Place(name)
    return made


def load(on: Shelf, name: str, now: float, num_bytes: int = 0) -> Place:
    """Somebody comes, the model is loaded for them, and they are its user."""
    place = on.arrive(name, now)
    assert on.settle(now).to_load == (place,)
    on.ask(place, num_bytes)
    assert on.settle(now).answered == (place,)
    assert place.error is None
    on.loaded(place, now)
    return place


def test_all_who_come_while_a_model_loads_are_its_users_after() -> None:
    it = shelf("a")
    first, second = it.arrive("a", 0), it.arrive("a", 0)
    assert first is second
    assert it.settle(0) == Work(to_load=(first,))
    it.arrive("a", 1)
    assert it.settle(1) == Work(), "one load, however many ask"
    it.give_up(first)
    it.loaded(first, 2)
    assert (first.state, first.num_users, first.num_waiting) == (State.READY, 2, 0)


def test_a_failed_load_is_tried_again_for_the_next() -> None:
    it = shelf("a")
    place = it.arrive("a", 0)
    it.settle(0)
    it.failed(place, ValueError("broken"))
    assert (place.state, place.num_waiting, it.settle(1)) == (State.FAILED, 0, Work())
    it.arrive("a", 2)
    assert it.settle(2) == Work(to_load=(place,))
    assert place.error is None


def test_the_least_recently_used_leaves_and_nobody_in_use_does() -> None:
    it = shelf("a", "b", "c", max_models=2)
    a, b = load(it, "a", 0), load(it, "b", 1)
    it.depart(b, 2)
    it.depart(a, 3)
    c = it.arrive("c", 4)
    it.settle(4)
    it.ask(c, 0)
    assert it.settle(5) == Work(to_close=(b,)), "a was used later"
    assert it.settle(6) == Work(), "b is closed once"
    it.closed(b)
    assert it.settle(7) == Work(answered=(c,))


def test_a_model_in_use_leaves_after_its_users_and_nobody_new_gets_in_first() -> None:
    it = shelf("a", "b", max_models=1)
    a = load(it, "a", 0)
    b = it.arrive("b", 1)
    it.settle(1)
    it.ask(b, 0)
    assert it.settle(1) == Work()
    assert a.state is State.LEAVING
    it.arrive("a", 2)
    assert a.num_users == 1, "who comes now waits, or b would for ever"
    it.depart(a, 3)
    assert it.settle(3) == Work(to_close=(a,))
    it.closed(a)
    assert it.settle(4) == Work(to_load=(a,), answered=(b,))


def test_memory_is_counted_from_admission_to_the_end() -> None:
    it = shelf("a", "b", memory_bytes=100)
    a = load(it, "a", 0, 60)
    it.depart(a, 1)
    b = it.arrive("b", 2)
    it.settle(2)
    it.ask(b, 40)
    assert it.settle(2) == Work(answered=(b,)), "both fit"
    assert it.held() == (2, 100)
    it.failed(b, ValueError())
    assert it.held() == (1, 60)


def test_what_can_never_fit_is_refused_with_the_arithmetic() -> None:
    it = shelf("a", "b", memory_bytes=100_000_000)
    a = load(it, "a", 0, 60_000_000)
    a.is_pinned = True
    it.depart(a, 0)
    b = it.arrive("b", 1)
    it.settle(1)
    it.ask(b, 50_000_000)
    assert it.settle(1).answered == (b,)
    assert isinstance(b.error, OutOfMemory)
    assert str(b.error) == (
        "b needs 50 MB, and all models together may take 100 MB, of which a takes 60 MB and must stay"
    )
    assert "so that it takes at most 40 MB" in b.error.hint
    assert a.state is State.READY


def test_who_waits_is_refused_where_pinning_took_the_last_place() -> None:
    it = shelf("a", "b", max_models=1)
    a = load(it, "a", 0)
    b = it.arrive("b", 1)
    it.settle(1)
    a.is_pinned = True
    it.ask(b, 0)
    assert it.settle(1).answered == (b,)
    assert str(b.error) == ("there is no place for b: of the models, 1 may be in memory at once, and a must stay")


@pytest.mark.parametrize(("own", "of_use", "leaves_at"), [(10, None, 15), (10, 3, 8), (None, 3, 8), (10, 0, 5)])
def test_keep_alive(own: float | None, of_use: float | None, leaves_at: float) -> None:
    it = shelf("a")
    it.places["a"].keep_alive_s = own
    a = load(it, "a", 0)
    assert it.settle(100) == Work(), "it is in use"
    it.depart(a, 5, keep_alive_s=of_use)
    assert it.next_expiry() == leaves_at
    assert it.settle(leaves_at - 0.01) == Work()
    assert it.settle(leaves_at) == Work(to_close=(a,))


def test_without_keep_alive_or_pinned_a_model_stays() -> None:
    it = shelf("a", "b")
    it.places["b"].keep_alive_s, it.places["b"].is_pinned = 1, True
    for name in ("a", "b"):
        it.depart(load(it, name, 0), 0)
    assert it.next_expiry() is None
    assert it.settle(1e9) == Work()
    it.leave(it.places["b"])
    assert it.settle(1e9) == Work(to_close=(it.places["b"],)), "but on request"


def test_a_model_that_was_lost_is_loaded_anew() -> None:
    it = shelf("a")
    a = load(it, "a", 0)
    it.leave(a, error := ValueError("it crashed"))
    it.arrive("a", 1)
    assert it.settle(1) == Work(), "its user has not left yet"
    it.depart(a, 2)
    assert it.settle(2) == Work(to_close=(a,))
    it.closed(a)
    assert (a.state, a.error) == (State.FAILED, error)
    assert it.settle(3) == Work(to_load=(a,))


def test_shares() -> None:
    assert shelf("a", memory_bytes=90).share_bytes() == 90
    assert shelf("a", "b", "c", memory_bytes=90).share_bytes() == 30
    assert shelf("a", "b", "c", memory_bytes=90, max_models=2).share_bytes() == 45
    assert shelf("a").share_bytes() is None


NAMES = ("a", "b", "c", "d")
MAX_MODELS, MEMORY_BYTES = 3, 100


class Driven(RuleBasedStateMachine):
    """Any order of what people and loads may do."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.it = shelf(*NAMES, max_models=MAX_MODELS, memory_bytes=MEMORY_BYTES)
        for place, keep_s in zip(self.it.places.values(), (None, 0, 3, 10), strict=True):
            place.keep_alive_s = keep_s
        self.loads: set[str] = set()
        self.may_go_on: set[str] = set()
        self.open: set[str] = set()
        self.closing: set[str] = set()

    def settle(self) -> None:
        self.now += 1
        work = self.it.settle(self.now)
        for place in work.to_load:
            assert place.name not in self.loads | self.open, "one load at a time"
            self.loads.add(place.name)
        for place in work.answered:
            if place.error is not None:
                self.loads.remove(place.name)
                self.it.failed(place, place.error)
            else:
                self.may_go_on.add(place.name)
        for place in work.to_close:
            assert place.num_users == 0, "nobody in use is unloaded"
            self.open.remove(place.name)
            self.closing.add(place.name)

    def places(self, names: set[str]) -> list[Place]:
        return [self.it.places[name] for name in sorted(names)]

    def asked(self) -> set[str]:
        return {place.name for place in self.it.places.values() if place.asked_bytes is not None}

    @rule(name=st.sampled_from(NAMES))
    def arrive(self, name: str) -> None:
        self.it.arrive(name, self.now)
        self.settle()

    @rule(data=st.data(), keep_s=st.sampled_from([None, 0, 5]))
    def depart(self, data: st.DataObject, keep_s: float | None) -> None:
        if users := [place for place in self.it.places.values() if place.num_users]:
            self.it.depart(data.draw(st.sampled_from(users)), self.now, keep_alive_s=keep_s)
            self.settle()

    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        if waiting := [place for place in self.it.places.values() if place.num_waiting]:
            self.it.give_up(data.draw(st.sampled_from(waiting)))
            self.settle()

    @rule(data=st.data(), num_bytes=st.integers(0, MEMORY_BYTES + 10))
    def ask(self, data: st.DataObject, num_bytes: int) -> None:
        if places := self.places(self.loads - self.may_go_on - self.asked()):
            self.it.ask(data.draw(st.sampled_from(places)), num_bytes)
            self.settle()

    @rule(data=st.data())
    def load(self, data: st.DataObject) -> None:
        if places := self.places(self.may_go_on):
            place = data.draw(st.sampled_from(places))
            self.may_go_on.remove(place.name)
            self.loads.remove(place.name)
            self.open.add(place.name)
            self.it.loaded(place, self.now)
            self.settle()

    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        if places := self.places(self.loads):
            place = data.draw(st.sampled_from(places))
            self.may_go_on.discard(place.name)
            self.loads.remove(place.name)
            self.it.failed(place, ValueError())
            self.settle()

    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        if places := self.places(self.closing):
            place = data.draw(st.sampled_from(places))
            self.closing.remove(place.name)
            self.it.closed(place)
            self.settle()

    @precondition(lambda self: self.open)
    @rule(data=st.data(), is_lost=st.booleans())
    def leave(self, data: st.DataObject, is_lost: bool) -> None:
        self.it.leave(data.draw(st.sampled_from(self.places(self.open))), ValueError() if is_lost else None)
        self.settle()

    @rule(data=st.data(), pinned=st.booleans())
    def pin(self, data: st.DataObject, pinned: bool) -> None:
        self.it.places[data.draw(st.sampled_from(NAMES))].is_pinned = pinned
        self.settle()

    @invariant()
    def no_limit_is_exceeded(self) -> None:
        num_models, num_bytes = self.it.held()
        assert num_models <= MAX_MODELS
        assert num_bytes <= MEMORY_BYTES

    @invariant()
    def whoever_holds_memory_is_known(self) -> None:
        holds = {place.name for place in self.it.places.values() if place.held_bytes is not None}
        assert holds == self.may_go_on | self.open | self.closing

    def teardown(self) -> None:
        """Where users leave and loads succeed, everybody is served."""
        for _ in range(100):
            for place in self.it.places.values():
                while place.num_users:
                    self.it.depart(place, self.now)
            for name in self.loads - self.may_go_on - self.asked():
                self.it.ask(self.it.places[name], 10)
            for name in self.may_go_on & self.loads:
                self.loads.remove(name)
                self.open.add(name)
                self.it.loaded(self.it.places[name], self.now)
            self.may_go_on.clear()
            for name in self.closing:
                self.it.closed(self.it.places[name])
            self.closing.clear()
            self.settle()
        left = Counter({place.name: place.num_waiting + place.num_users for place in self.it.places.values()})
        assert +left == Counter(), "nobody waits for ever"


TestDriven = Driven.TestCase
TestDriven.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
