"""What a model costs, before it is loaded: the arithmetic of its memory and of its speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiwa.errors import InvalidOption, OutOfMemory

MIN_CONTEXT_LENGTH = 256
RESERVED_SHARE = 0.1
"""Of the free memory, left to everything else when nobody says how long the context shall be."""
CACHE_BYTES = (2, 0)
"""Of a number in the cache, and of the scale that a head's numbers of one token share: float16."""
HEAD_LANES = 16
"""Numbers of a head are stored in whole lots of these."""
SCRATCH_TOKENS = 512
MAX_CONTEXTS = 4
"""The cache is made for so many full contexts, where that takes no more than `SPARE_SHARE` of the memory left over."""
MIN_SEQUENCES, MAX_SEQUENCES = 4, 256
SPARE_SHARE = 0.25
STATES_PER_SEQUENCE = 2
"""Of recurrent layers: what a sequence remembers, and an older one of these to go back to."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The memory that a model takes with its cache full, in bytes."""

    context_length: int
    cache_tokens: int
    """How many tokens all sequences together may hold, at least one context."""
    max_sequences: int
    weights_bytes: int
    cache_bytes: int
    scratch_bytes: int
    state_bytes: int
    """What recurrent layers remember, however long the context."""

    @property
    def total_bytes(self) -> int:
        """All of it together."""
        return self.weights_bytes + self.cache_bytes + self.scratch_bytes + self.state_bytes


def plan(
    config: Mapping[str, Any],
    weights_bytes: int,
    *,
    context_length: int | None = None,
    available_bytes: int | None = None,
    cache_bytes: tuple[int, int] = CACHE_BYTES,
    smaller: Mapping[str, int] | None = None,
) -> Plan:
    """The memory for a model of this (normalized) `config`; without `context_length`, the longest context that fits.

    `available_bytes` is what may be taken; None where it is not known, and then nothing is refused for its size.
    `cache_bytes` are those of a number in the cache and of a head's scale; `smaller`, those of the weights by the
    `quantization` that gives them, for the hint of an error.

    Raises `InvalidOption` for a context that the model cannot have, `OutOfMemory` with the arithmetic.
    """
    longest = int(config["max_position_embeddings"])
    _check(context_length, longest)
    per_token, per_sequence = cache_bytes_per_token(config, cache_bytes), _state_bytes(config)
    scratch_bytes = _scratch_bytes(config)
    fixed_bytes = weights_bytes + scratch_bytes + MIN_SEQUENCES * per_sequence
    left = 0 if available_bytes is None else int(available_bytes * (1 - RESERVED_SHARE)) - fixed_bytes
    chosen = context_length or longest
    if context_length is None and available_bytes is not None:
        fits = max(left // per_token, 0) // MIN_CONTEXT_LENGTH * MIN_CONTEXT_LENGTH
        chosen = min(longest, max(fits, MIN_CONTEXT_LENGTH))
    spare = max(0, int((left - chosen * per_token) * SPARE_SHARE))
    more_sequences = min(MAX_SEQUENCES - MIN_SEQUENCES, spare // 2 // per_sequence if per_sequence else MAX_SEQUENCES)
    spare -= more_sequences * per_sequence
    more_tokens = min((MAX_CONTEXTS - 1) * chosen, spare // per_token // MIN_CONTEXT_LENGTH * MIN_CONTEXT_LENGTH)
    planned = Plan(
        context_length=chosen,
        cache_tokens=chosen + more_tokens,
        max_sequences=MIN_SEQUENCES + more_sequences,
        weights_bytes=weights_bytes,
        cache_bytes=(chosen + more_tokens) * per_token,
        scratch_bytes=scratch_bytes,
        state_bytes=(MIN_SEQUENCES + more_sequences) * per_sequence,
    )
    if available_bytes is not None and planned.total_bytes > available_bytes:
        raise OutOfMemory(
            f"the model needs {in_megabytes(planned.total_bytes)}, and {in_megabytes(available_bytes)} are free: "
            f"{in_megabytes(weights_bytes)} weights + {in_megabytes(planned.cache_bytes)} for {chosen:,} tokens "
            f"of context ({per_token:,} bytes each) + {in_megabytes(scratch_bytes + planned.state_bytes)} to work with",
            hint=_what_would_fit(available_bytes - fixed_bytes, weights_bytes, per_token, smaller or {}),
        )
    return planned


def cache_bytes_per_token(config: Mapping[str, Any], cache_bytes: tuple[int, int] = CACHE_BYTES) -> int:
    """Bytes that one token's keys and values take over all layers, by default in float16."""
    number, scale = cache_bytes
    return 2 * sum(
        num_heads * (-(-head_dim // HEAD_LANES) * HEAD_LANES * number + scale)
        for num_heads, head_dim in _cached_heads(config)
    )


def state_bytes_per_sequence(config: Mapping[str, Any]) -> int:
    """Bytes that recurrent layers remember of one sequence, in float32."""
    if not _num_recurrent_layers(config):
        return 0
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    values = config["linear_num_value_heads"] * config["linear_value_head_dim"]
    past = (config["linear_conv_kernel_dim"] - 1) * (2 * keys + values)
    return 4 * int(_num_recurrent_layers(config) * (past + config["linear_key_head_dim"] * values))


def active_bytes(config: Mapping[str, Any], weights_bytes: int, tensor_bytes: Mapping[str, int]) -> int:
    """What one token reads of `weights_bytes`: all of them, but for the experts that it is not given to.

    `tensor_bytes` are those of the checkpoint's tensors by name, which may be packed otherwise in memory.
    """
    of_experts = sum(num_bytes for name, num_bytes in tensor_bytes.items() if ".experts." in name)
    if not of_experts:
        return weights_bytes
    idle_share = 1.0 - config["num_experts_per_tok"] / config["num_experts"]
    return int(weights_bytes * (1 - of_experts / sum(tensor_bytes.values()) * idle_share))


def decode_limit(weights_bytes: int, cache_bytes: int, bandwidth: float) -> float:
    """Tokens per second that memory allows: each one reads its active weights, and the cache of the tokens before it.

    `bandwidth` in bytes per second.
    """
    return bandwidth / (weights_bytes + cache_bytes)


def in_megabytes(num_bytes: int) -> str:
    """A size in words: "1,234 MB", a megabyte being a million bytes."""
    return f"{num_bytes / 1e6:,.0f} MB"


def _cached_heads(config: Mapping[str, Any]) -> list[tuple[int, int]]:
    """How many key-value heads there are and how large, in each layer that stores any."""
    small = (int(config["num_key_value_heads"]), int(config["head_dim"]))
    large = (int(config.get("num_global_key_value_heads", 0)), int(config.get("global_head_dim", 0)))
    num_own = config["num_hidden_layers"] - config.get("num_kv_shared_layers", 0)
    kinds = config.get("layer_types") or ["full_attention"] * num_own
    if not all(large):
        large = small
    return [large if kind == "full_attention" else small for kind in kinds[:num_own] if kind != "linear_attention"]


def _state_bytes(config: Mapping[str, Any]) -> int:
    return STATES_PER_SEQUENCE * state_bytes_per_sequence(config)


def _num_recurrent_layers(config: Mapping[str, Any]) -> int:
    return list(config.get("layer_types") or ()).count("linear_attention")


def _check(context_length: int | None, longest: int) -> None:
    if context_length is None:
        return
    if isinstance(context_length, bool) or not isinstance(context_length, int) or context_length < 2:
        raise InvalidOption(
            f"context_length={context_length!r} is impossible",
            hint=f"context_length must be a whole number from 2 to {longest:,}, which this model was made for",
        )
    if context_length > longest:
        raise InvalidOption(
            f"context_length={context_length:,} is more than this model was made for",
            hint=f"it knows {longest:,} tokens of context",
        )


def _scratch_bytes(config: Mapping[str, Any]) -> int:
    """What one step's activations and the logits take, roughly, in float32."""
    activations = SCRATCH_TOKENS * (6 * config["hidden_size"] + 2 * config["intermediate_size"])
    return int(4 * (activations + config["vocab_size"]))


def _what_would_fit(left_bytes: int, weights_bytes: int, per_token: int, smaller: Mapping[str, int]) -> str:
    fits = left_bytes // per_token
    if fits >= MIN_CONTEXT_LENGTH:
        return f"load it with context_length={fits // MIN_CONTEXT_LENGTH * MIN_CONTEXT_LENGTH}"
    for quantization, num_bytes in sorted(smaller.items(), key=lambda item: -item[1]):
        if left_bytes + weights_bytes - num_bytes >= MIN_CONTEXT_LENGTH * per_token:
            return f'load it with quantization="{quantization}": its weights then take {in_megabytes(num_bytes)}'
    return "choose a smaller model, or free memory"
