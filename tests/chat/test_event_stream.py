"""Server-sent events out of pieces of any size."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiwa.chat import event_stream
from kaiwa.chat.event_stream import EventStream
from kaiwa.errors import RemoteFailed

STREAM = (
    'event: message\r\ndata: {"a": 1}\r\n\r\n: a comment\n\ndata:no space\nid: 7\n\ndata: two\ndata: lines\n\n'
    "data: ü→😀\n\nretry: 10\n\ndata: unfinished"
).encode()
FOUND = ['{"a": 1}', "no space", "two\nlines", "ü→😀"]


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_pieces_give_the_same_events(cuts: list[int]) -> None:
    stream = EventStream()
    borders = [0, *sorted(cuts), len(STREAM)]
    found = [data for begin, end in itertools.pairwise(borders) for data in stream.push(STREAM[begin:end])]
    assert found == FOUND
    assert stream.finish() == ["unfinished"]


def test_an_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_EVENT_BYTES", 100)
    stream = EventStream()
    for _ in range(9):
        assert stream.push(b"data: 1234567890\n") == []
    with pytest.raises(RemoteFailed, match="longer than 100 bytes"):
        stream.push(b"data: 1234567890123\n")
