"""Messages over a socket: whole, in order, however they are cut and whoever else sends."""

from __future__ import annotations

import pickle
import socket
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaiwa.runtime.process.channel import Channel, pack


@given(
    st.lists(st.binary(max_size=300) | st.text(max_size=50) | st.tuples(st.integers(), st.none()), max_size=8),
    st.lists(st.integers(1, 40)),
)
@settings(deadline=None)
def test_any_cuts_give_the_same_messages(messages: list[object], sizes: list[int]) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        channel = Channel(theirs)
        stream, got = b"".join(pack(message) for message in messages), []
        for size in [*sizes, len(stream) or 1]:
            piece, stream = stream[:size], stream[size:]
            ours.sendall(piece)
            while arrived := channel.receive(timeout_s=0):
                got += arrived
        assert got == messages
        channel.close()


def test_many_threads_send_and_nothing_is_lost_or_overtaken() -> None:
    ours, theirs = (Channel(end) for end in socket.socketpair())
    threads = [
        threading.Thread(target=lambda name=name: [ours.send((name, number)) for number in range(500)])
        for name in range(8)
    ]
    for thread in threads:
        thread.start()
    got: list[tuple[int, int]] = []
    while len(got) < 8 * 500:
        got += theirs.receive() or []
    for thread in threads:
        thread.join()
    for name in range(8):
        assert [number for sender, number in got if sender == name] == list(range(500))
    ours.close()
    theirs.close()


def test_a_large_message_crosses_whole() -> None:
    ours, theirs = (Channel(end) for end in socket.socketpair())
    large = list(range(1_000_000))
    sender = threading.Thread(target=ours.send, args=(large,))
    sender.start()
    assert theirs.receive() == [large]
    sender.join()
    ours.close()
    theirs.close()


def test_the_end_is_told_and_sending_into_it_is_not_an_error() -> None:
    ours, theirs = (Channel(end) for end in socket.socketpair())
    ours.send("last words")
    ours.end()
    ours.end()
    assert theirs.receive() == ["last words"]
    assert theirs.receive() is None
    theirs.close()
    ours.send("nobody listens")
    assert ours.receive() is None
    ours.close()


def test_waiting_for_a_message_has_an_end() -> None:
    ours, theirs = (Channel(end) for end in socket.socketpair())
    started = time.monotonic()
    assert ours.receive(timeout_s=0.05) == []
    assert 0.04 < time.monotonic() - started < 1
    ours.close()
    theirs.close()


def test_what_cannot_cross_is_refused_before_anything_is_sent() -> None:
    ours, theirs = (Channel(end) for end in socket.socketpair())
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        ours.send(lambda: None)
    ours.send("next")
    assert theirs.receive() == ["next"]
    ours.close()
    theirs.close()
