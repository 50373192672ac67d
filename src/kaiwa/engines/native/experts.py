"""The experts of a layer, in whichever way a checkpoint holds them."""

from __future__ import annotations

from collections.abc import Sequence

from kaiwa.engines.native._native import Matrix
from kaiwa.engines.native.program import Expert, Projection
from kaiwa.engines.native.weights import Weights

NAMES = ("gate_proj", "up_proj", "down_proj")

Stack = Sequence[Sequence[Matrix]]
"""Matrices, or biases of one row, for each expert."""


def load(
    weights: Weights, name: str, num_experts: int, width: int, hidden: int, *, names: Sequence[str] = NAMES
) -> list[Expert]:
    """The experts under this name; `names` are those of a gate, what it multiplies, and the way back.

    Published checkpoints have a tensor for each matrix of each expert. GGUF files have one for all matrices of a kind,
    and may have biases. Newer families have two: each gate with what it multiplies below it, and all ways back.
    """
    gate, up, down = names
    if f"{name}.0.{gate}.weight" in weights:
        return [one(weights, f"{name}.{expert}", width, hidden, names=names) for expert in range(num_experts)]
    if f"{name}.gate_up_proj" in weights:
        pairs: Stack = weights.stack(
            f"{name}.gate_up_proj",
            (num_experts, 2 * width, hidden),
            lambda part: [part.rows(0, width), part.rows(width, 2 * width)],
        )
        way_back = f"{name}.down_proj" if f"{name}.down_proj" in weights else f"{name}.down_proj.weight"  # of GGUF
        return zipped(pairs, weights.stack(way_back, (num_experts, hidden, width)))
    pairs = _beside(
        weights.stack(f"{name}.{gate}.weight", (num_experts, width, hidden)),
        weights.stack(f"{name}.{up}.weight", (num_experts, width, hidden)),
    )
    downs = weights.stack(f"{name}.{down}.weight", (num_experts, hidden, width))
    if f"{name}.{gate}.bias" not in weights:
        return zipped(pairs, downs)
    biases = _beside(
        weights.stack(f"{name}.{gate}.bias", (num_experts, width)),
        weights.stack(f"{name}.{up}.bias", (num_experts, width)),
    )
    return zipped(pairs, downs, biases, weights.stack(f"{name}.{down}.bias", (num_experts, hidden)))


def one(weights: Weights, name: str, width: int, hidden: int, *, names: Sequence[str] = NAMES) -> Expert:
    """An expert whose matrices are tensors of their own."""
    gate, up, down = names
    return Expert(
        Projection(weights.matrix(f"{name}.{gate}.weight", width, hidden)),
        Projection(weights.matrix(f"{name}.{up}.weight", width, hidden)),
        Projection(weights.matrix(f"{name}.{down}.weight", hidden, width)),
    )


def zipped(pairs: Stack, downs: Stack, pair_biases: Stack = (), down_biases: Stack = ()) -> list[Expert]:
    """Experts of each one's gate with what it multiplies, and of its way back; with the biases of both, or none."""
    matrices = _beside(pairs, downs)
    if not pair_biases:
        return [Expert(*map(Projection, three)) for three in matrices]
    vectors = [[bias.to_vector() for bias in three] for three in _beside(pair_biases, down_biases)]
    return [Expert(*map(Projection, three, biases)) for three, biases in zip(matrices, vectors, strict=True)]


def _beside(left: Stack, right: Stack) -> Stack:
    return [[*ours, *theirs] for ours, theirs in zip(left, right, strict=True)]
