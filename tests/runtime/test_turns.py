"""The queue in front of an engine: fair, interruptible, and safe where the garbage collector steps in."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from kaiwa.runtime.turns import Ticket, Turns


def test_turns_come_in_the_order_of_asking() -> None:
    turns, order = Turns(), []
    first = Ticket(turns)
    first.wait()

    def work(name: int, ticket: Ticket) -> None:
        ticket.wait()
        order.append(name)
        ticket.leave()

    threads = []
    for name in range(20):
        ticket = Ticket(turns)
        threads.append(threading.Thread(target=work, args=(name, ticket)))
        threads[-1].start()
        until(lambda ticket=ticket: ticket in turns._queue)
    assert order == []
    first.leave()
    for thread in threads:
        thread.join(10)
    assert order == list(range(20))
    assert turns.current is None


def test_no_two_have_the_turn_and_nobody_is_forgotten() -> None:
    turns = Turns()
    inside, most, served = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, served
        for _ in range(200):
            ticket = Ticket(turns)
            ticket.wait()
            inside += 1
            most = max(most, inside)
            served += 1
            inside -= 1
            ticket.leave()

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (served, most, turns.current) == (16 * 200, 1, None)


def test_a_withdrawn_ticket_waits_no_longer() -> None:
    turns = Turns()
    first, second, third = Ticket(turns), Ticket(turns), Ticket(turns)
    first.wait()
    thread = threading.Thread(target=second.wait)
    thread.start()
    second.withdraw()
    thread.join(10)
    assert not thread.is_alive()
    assert second.is_withdrawn
    second.leave()
    first.leave()
    third.wait()
    third.leave()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
def test_an_interrupt_ends_the_wait_and_the_place_in_the_queue() -> None:
    turns = Turns()
    first = Ticket(turns)
    first.wait()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            Ticket(turns).wait()
    finally:
        signal.signal(signal.SIGALRM, previous)
    first.leave()
    assert turns.current is None


def test_a_thread_that_reads_one_answer_may_ask_for_another() -> None:
    turns = Turns()
    outer, inner, another = Ticket(turns), Ticket(turns), Ticket(turns)
    outer.wait()
    outer.pause()
    inner.wait()
    inner.pause()
    Ticket(turns).wait()
    inner.resume()
    inner.leave()
    another.wait()
    assert turns.current is outer


def test_a_ticket_may_leave_while_the_queue_is_being_changed() -> None:
    """As the garbage collector does it: in the same thread, in the middle of another change."""
    turns = Turns()
    first, second = Ticket(turns), Ticket(turns)
    first.wait()
    with turns._mutex:
        first.leave()
        thread = threading.Thread(target=second.wait)
        thread.start()
        until(lambda: len(turns._changes) == 2)
    Ticket(turns).leave()
    thread.join(10)
    assert turns.current is second


def test_after_closing_nobody_waits() -> None:
    turns = Turns()
    first, second = Ticket(turns), Ticket(turns)
    first.wait()
    thread = threading.Thread(target=second.wait)
    thread.start()
    until(lambda: second in turns._queue)
    turns.close()
    thread.join(10)
    assert not thread.is_alive()
    Ticket(turns).wait()


def until(is_true: object, timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_true():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.001)
