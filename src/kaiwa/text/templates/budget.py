"""What one rendering of a chat template may use: time, memory, and the size of a single value.

A template comes with a model file, from anyone. A loop of `range` upon `range`, a string that doubles, or a list that
holds itself a thousand times must end in an error while the machine is still well.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

MAX_SECONDS = 2.0
"""Processor time of the rendering thread, so that a busy machine fails no honest template."""

FREE_CHARACTERS = 1_000_000
FREE_BYTES = 64 << 20
CLOCK_EVERY = 16
"""Steps between two looks at the clock; a step costs about a microsecond, a look a third of one."""

NODES_OF_A_STEP = 256
MAX_INTEGER_BITS = 4096


class Exhausted(Exception):
    """A template used more than it may."""


class Budget:
    """Counts what a template uses. Every method raises `Exhausted` at the limit.

    `inputs` are what the template is given; the limits grow with their size, in characters that they would print.
    """

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self._weights: dict[int, int] = {}
        self.max_size = sys.maxsize
        size = self._admit(inputs)
        self.max_size = FREE_CHARACTERS + 4 * size
        self._bytes_left = FREE_BYTES + 64 * size
        self._deadline = time.thread_time() + MAX_SECONDS
        self._until_clock = CLOCK_EVERY

    def step(self, num_bytes: int = 0) -> None:
        """One more thing was done, which took `num_bytes` of memory."""
        self._until_clock -= 1
        self._bytes_left -= num_bytes
        if self._bytes_left < 0:
            raise Exhausted("it makes more text than a prompt can have")
        if self._until_clock <= 0:
            self._until_clock = CLOCK_EVERY
            if time.thread_time() > self._deadline:
                raise Exhausted(f"it runs for more than {MAX_SECONDS:g} seconds")

    def allow(self, size: int) -> None:
        """Something of `size` characters or items is about to be made."""
        if size > self.max_size:
            raise Exhausted(f"it makes a value of {size:,} characters")

    def made(self, value: Any) -> Any:
        """`value` was made: it is returned if it is not too large."""
        self.allow(self.weight(value))
        self.step(0 if id(value) in self._weights else sys.getsizeof(value))
        return value

    def counted(self, items: Iterable[Any], num_bytes: int = 0) -> Iterator[Any]:
        """The items, each of them counted as a step."""
        for item in items:
            self.step(64 + num_bytes)
            yield item

    def text(self, value: Any) -> str:
        """`value` as a template prints it."""
        if isinstance(value, str):
            return value
        self.allow(self.weight(value))
        return str(value)

    def weight(self, value: Any) -> int:
        """About how many characters `value` would print as; counting ends where it is too large."""
        if isinstance(value, str):
            return len(value)
        known = self._weights.get(id(value))
        if known is not None:
            return known
        weight, num_nodes, pending = 0, 0, [value]
        while pending and weight <= self.max_size:
            item = pending.pop()
            num_nodes += 1
            if isinstance(item, str):
                weight += len(item) + 4
            elif item is None or isinstance(item, (int, float)):
                weight += 16
            elif (known := self._weights.get(id(item))) is not None:
                weight += known
            else:
                weight += 16
                pending.extend(_children(item))
        self._until_clock -= num_nodes // NODES_OF_A_STEP
        return weight

    def _admit(self, value: Any) -> int:
        """The weight of an input, remembered for itself and for all that it holds."""
        if isinstance(value, str):
            return len(value) + 4
        weight = 16 + sum(self._admit(child) for child in _children(value))
        if isinstance(value, (list, tuple, dict)):
            self._weights[id(value)] = weight
        return weight


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, (list, tuple, set, frozenset, type({}.values()), type({}.items()), type({}.keys()))):
        return value
    try:
        return [object.__getattribute__(value, "_Namespace__attrs")]  # jinja2's namespace, which prints what it holds
    except AttributeError:
        return ()


CURRENT: ContextVar[Budget] = ContextVar("budget of the template being rendered")
