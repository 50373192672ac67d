"""Which rows a forward has: each sequence once, without a gap, and not much padding."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kaiwa.engines.torch.memory import Block, Memory
from kaiwa.engines.torch.rows import FREE_PADDING, Row, forwards

NUMBERS = st.one_of(st.integers(1, 4), st.integers(1, 600))


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    made = []
    for sequence in range(draw(st.integers(1, 12))):
        known = list(range(draw(st.one_of(st.just(0), NUMBERS))))
        new = list(range(len(known), len(known) + draw(st.one_of(st.just(1), NUMBERS))))
        memory = Memory(Block(None, num_columns=len(known)), length=len(known))
        made.append(Row(sequence, memory, known, new, is_long=draw(st.booleans())))
    return made


@given(rows())
def test_each_sequence_is_computed_once_and_without_a_gap(wanted: list[Row]) -> None:
    groups = forwards(wanted)
    assert sorted(row.sequence for group in groups for row in group) == list(range(len(wanted)))
    for group in groups:
        width = max(len(row.token_ids) for row in group)
        assert len({row.is_long for row in group}) == 1
        for row in group:
            asked = wanted[row.sequence]
            assert row.length == asked.length
            assert [*row.known_ids[: row.memory.length], *row.token_ids] == list(range(asked.length))
            assert len(row.token_ids) == min(width, row.length), "padding is in front of a sequence only"


@given(rows())
def test_padding_is_bounded(wanted: list[Row]) -> None:
    for group in forwards(wanted):
        longest, total = max(row.length for row in group), sum(row.length for row in group)
        assert longest * len(group) <= 2 * total + FREE_PADDING
        widths = [len(wanted[row.sequence].token_ids) for row in group]
        assert max(widths) <= 2 * min(widths) or max(widths) == 1


@given(rows())
def test_those_that_write_stay_together(wanted: list[Row]) -> None:
    block = Block(None, num_rows=len(wanted))

    def writing(num_written: int) -> list[Row]:
        return [Row(row.sequence, Memory(block, row.sequence, 0, row.length + num_written), (), [0]) for row in wanted]

    before, after = (forwards(writing(num_written))[0] for num_written in (0, 1))
    assert {row.sequence for row in before} <= {row.sequence for row in after}
    assert [row.memory.row for row in before] == sorted(row.memory.row for row in before)
