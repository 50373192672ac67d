"""How an engine holds a model: what may be chosen, and what is chosen where nobody does."""

from __future__ import annotations

import os
from collections import Counter

from kaiwa.engines.native import _native
from kaiwa.errors import InvalidOption, did_you_mean
from kaiwa.weights.checkpoint import Checkpoint

KV_DTYPES = {"float16": (2, 0), "float32": (4, 0), "int8": (1, 4)}
"""What the key-value cache may hold: the bytes of one number, and of the scale that a head's numbers share."""

ISA_WORDS = {"amx": "AMX", "avx512": "AVX-512 VNNI", "avx2": "AVX2", "neon": "Arm NEON", "portable": "portable"}


def choose_kv_dtype(requested: str | None, *, is_exact: bool) -> str:
    """What the key-value cache holds: `requested`, or what goes with weights that are exact or not.

    Raises `InvalidOption` for a name that is not known.
    """
    if requested is None:
        return "float32" if is_exact else "float16"
    if requested not in KV_DTYPES:
        raise InvalidOption(f"kv_dtype={requested!r} is not known", hint=did_you_mean(str(requested), KV_DTYPES))
    return requested


def choose_isa() -> str:
    """The instruction-set tier: the best one here, or what the environment variable `KAIWA_ISA` names.

    Raises `InvalidOption` for one that is not there.
    """
    available = _native.available_isas()
    forced = os.environ.get("KAIWA_ISA", "")
    if forced and forced not in available:
        raise InvalidOption(
            f"KAIWA_ISA={forced} names an instruction set that this processor or build does not have",
            hint=did_you_mean(forced, available),
        )
    return forced or available[0]


def choose_context(requested: int | None, longest: int) -> int:
    """Tokens of context: `requested`, or as many as the model knows. Raises `InvalidOption` for more, or for none."""
    if requested is None:
        return longest
    if not 1 <= requested <= longest:
        raise InvalidOption(
            f"context_length={requested:,} is impossible",
            hint=f"this model's context holds 1 to {longest:,} tokens",
        )
    return requested


def main_format(checkpoint: Checkpoint) -> str:
    """The number format of most of the weights' bytes in layers; embeddings are often stored more finely."""
    sizes: Counter[str] = Counter()
    for tensor in checkpoint.tensors.values():
        if len(tensor.shape) >= 2:
            sizes[tensor.format] += tensor.num_bytes
    return sizes.most_common(1)[0][0] if sizes else "none"
