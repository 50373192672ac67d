"""Texts as vectors, whoever makes them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple


class Embedding(NamedTuple):
    """A text's vector, of length 1, and how many tokens the text has.

    Of several texts that a server counts only together, the first has the tokens of all.
    """

    vector: Sequence[float]
    num_tokens: int


def of_length_1(vector: Sequence[float]) -> Sequence[float]:
    """The same direction."""
    length = math.sqrt(sum(number * number for number in vector)) or 1.0
    return array("f", (number / length for number in vector))
