"""The radix tree finds what a linear comparison of everything would find."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kaiwa.runtime.prefixes.radix_tree import RadixTree, common_prefix

words = st.lists(st.integers(0, 2), min_size=1, max_size=8)


@settings(deadline=None)
@given(st.lists(st.integers(0, 2), max_size=20), st.lists(st.integers(0, 2), max_size=20))
def test_common_prefix_is_the_longest(a: list[int], b: list[int]) -> None:
    length = common_prefix(a, b)
    assert a[:length] == b[:length]
    assert length == min(len(a), len(b)) or a[length] != b[length]


def test_the_longest_beginning_comes_first() -> None:
    tree: RadixTree[str] = RadixTree()
    for word in ("to", "tea", "teapot", "ten"):
        tree.insert([*word.encode()], word)
    found = list(tree.longest([*b"teacup"]))
    assert found == [("tea", 3)]
    assert list(tree.longest([*b"teapots"])) == [("teapot", 6), ("tea", 3)]
    assert list(tree.longest([*b"teapolo"])) == [("teapot", 5), ("tea", 3)]
    assert list(tree.longest([*b"xylophone"])) == []


class AnyWords(RuleBasedStateMachine):
    """A tree beside a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.tree: RadixTree[int] = RadixTree()
        self.model: dict[tuple[int, ...], int] = {}
        self.count = 0

    @rule(word=words)
    def insert(self, word: list[int]) -> None:
        self.count += 1
        assert self.tree.insert(word, self.count) == self.model.get(tuple(word))
        self.model[tuple(word)] = self.count

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        word = data.draw(st.sampled_from(sorted(self.model)))
        self.tree.remove(word)
        del self.model[word]

    @rule(word=words)
    def look_up(self, word: list[int]) -> None:
        found = list(self.tree.longest(word))
        values = {value: [*key] for key, value in self.model.items()}
        assert all(common_prefix(values[value], word) == length for value, length in found)
        longest = max((common_prefix([*key], word) for key in self.model), default=0)
        assert (found[0][1] if found else 0) == longest
        whole = {value for key, value in self.model.items() if tuple(word[: len(key)]) == key}
        assert whole <= {value for value, _ in found}
        lengths = [length for _, length in found]
        assert lengths == sorted(lengths, reverse=True)

    @invariant()
    def empty_is_empty(self) -> None:
        assert self.tree.is_empty == (not self.model)


TestAnyWords = AnyWords.TestCase
TestAnyWords.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
