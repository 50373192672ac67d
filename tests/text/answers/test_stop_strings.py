"""Stop strings: the same cut, however the text arrives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kaiwa.text.answers.stop_strings import StopStrings

LETTERS = st.text(alphabet="ab c", max_size=30)


def watched(stops: list[str], parts: list[str]) -> tuple[str, bool]:
    """All that may be shown of `parts`, and whether a stop string was met."""
    watch, shown, met = StopStrings(stops), "", False
    for part in parts:
        text, met = watch.push(part)
        shown += text
        if met:
            break
    return shown + watch.flush(), met


def cut(stops: list[str], text: str) -> tuple[str, bool]:
    """The same of a whole text: up to the stop string that ends first, and of those the longest."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end - max(map(len, found))], True
    return text, False


@given(stops=st.lists(st.text(alphabet="ab c", min_size=1, max_size=4), max_size=3), text=LETTERS, data=st.data())
def test_any_chunking_gives_the_same(stops: list[str], text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert watched(stops, parts) == cut(stops, text)


@given(stops=st.lists(st.text(alphabet="ab c", min_size=1, max_size=4), max_size=3), text=LETTERS)
def test_only_what_could_begin_a_stop_string_is_held_back(stops: list[str], text: str) -> None:
    watch, shown = StopStrings(stops), ""
    for end in range(1, len(text) + 1):
        part, met = watch.push(text[end - 1])
        shown += part
        if met:
            break
        held = text[len(shown) : end]
        assert not held or any(stop.startswith(held) for stop in stops)


def test_what_comes_before_a_stop_string_is_shown() -> None:
    watch = StopStrings(["END"])
    assert watch.push("one E") == ("one ", False)
    assert watch.push("N") == ("", False)
    assert watch.push("D two") == ("", True)
    assert watch.push(" three") == ("", True)
    assert watch.met == "END"
    assert watch.flush() == ""


def test_without_stop_strings_everything_is_shown_at_once() -> None:
    assert StopStrings([]).push("text") == ("text", False)
