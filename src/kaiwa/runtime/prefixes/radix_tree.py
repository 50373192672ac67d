"""A radix tree: values by sequences of token ids, to find the one that shares the longest beginning with another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

V = TypeVar("V")


class _Node(Generic[V]):
    """`label` is what the edge from its parent says. Without a value it has two children or more, or is the root."""

    __slots__ = ("children", "label", "value")

    def __init__(self, label: list[int], value: V | None = None) -> None:
        self.label = label
        self.value = value
        self.children: dict[int, _Node[V]] = {}


class RadixTree(Generic[V]):
    """At most one value for each sequence of token ids. Looking one up takes as long as the sequence is."""

    def __init__(self) -> None:
        self._root: _Node[V] = _Node([])

    @property
    def is_empty(self) -> bool:
        """Whether it holds no value."""
        return not self._root.children and self._root.value is None

    def insert(self, token_ids: list[int], value: V) -> V | None:
        """Put a value in its place; the one that was there before."""
        node, depth = self._root, 0
        while depth < len(token_ids):
            child = node.children.get(token_ids[depth])
            if child is None:
                child = node.children[token_ids[depth]] = _Node(token_ids[depth:])
            same = common_prefix(child.label, token_ids[depth:])
            if same < len(child.label):
                child = node.children[token_ids[depth]] = _split(child, same)
            node, depth = child, depth + same
        before, node.value = node.value, value
        return before

    def remove(self, token_ids: list[int]) -> None:
        """Take the value of a sequence out. Raises `KeyError` where there is none."""
        node, depth = self._root, 0
        parents: list[_Node[V]] = []
        while depth < len(token_ids):
            parents.append(node)
            node = node.children[token_ids[depth]]
            depth += len(node.label)
        if node.value is None or depth != len(token_ids):
            raise KeyError("no value has these token ids")
        node.value = None
        if parents and not node.children:
            del parents[-1].children[node.label[0]]
            node = parents.pop()
        if parents and node.value is None and len(node.children) == 1:
            (child,) = node.children.values()
            child.label = [*node.label, *child.label]
            parents[-1].children[node.label[0]] = child

    def longest(self, token_ids: list[int]) -> Iterator[tuple[V, int]]:
        """Values that begin like `token_ids`, and how many tokens they share with it, the longest beginning first.

        One that goes on differently, and then all that are a beginning of `token_ids` as a whole.
        """
        node, depth = self._root, 0
        whole: list[tuple[V, int]] = []
        while (child := node.children.get(token_ids[depth]) if depth < len(token_ids) else None) is not None:
            same = common_prefix(child.label, token_ids[depth:])
            node, depth = child, depth + same
            if same < len(child.label):
                break
            if node.value is not None:
                whole.append((node.value, depth))
        if depth and not (whole and whole[-1][1] == depth):
            yield _any_value(node), depth
        yield from reversed(whole)


def common_prefix(a: list[int], b: list[int]) -> int:
    """How many tokens two sequences, both lists, begin with alike."""
    longest = min(len(a), len(b))
    if a[:longest] == b[:longest]:
        return longest
    low, high = 0, longest  # the first `low` are alike, the first `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _split(node: _Node[V], length: int) -> _Node[V]:
    """Put a node in the middle of an edge: the new one, above `node`."""
    upper: _Node[V] = _Node(node.label[:length])
    node.label = node.label[length:]
    upper.children[node.label[0]] = node
    return upper


def _any_value(node: _Node[V]) -> V:
    while node.value is None:
        node = next(iter(node.children.values()))
    return node.value
