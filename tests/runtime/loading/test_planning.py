"""The arithmetic of a model's memory, by hand and at its edges."""

from __future__ import annotations

import pytest

from kaiwa.errors import InvalidOption, OutOfMemory
from kaiwa.runtime.loading.planning import (
    active_bytes,
    cache_bytes_per_token,
    decode_limit,
    plan,
    state_bytes_per_sequence,
)

SMOLLM2 = {
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 64,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
}
WEIGHTS = 90_000_000


def test_a_token_of_smollm2_by_hand() -> None:
    # keys and values, 30 layers, 3 heads, 64 numbers, 2 bytes
    assert cache_bytes_per_token(SMOLLM2) == 2 * 30 * 3 * 64 * 2 == 23_040
    assert cache_bytes_per_token({**SMOLLM2, "head_dim": 128}) == 46_080


def test_layers_of_two_shapes_of_which_some_share() -> None:
    gemma = {
        **SMOLLM2,
        "num_hidden_layers": 6,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2,
        "num_global_key_value_heads": 1,
        "global_head_dim": 128,
        "num_kv_shared_layers": 2,
    }
    # keys and values, 2 bytes; three small layers of 3 heads of 64 and a large one of 128, the last two read theirs
    assert cache_bytes_per_token(gemma) == 2 * 2 * (3 * 3 * 64 + 128)


def test_recurrent_layers_keep_no_keys_and_values_but_a_state() -> None:
    hybrid = {
        **SMOLLM2,
        "layer_types": ["linear_attention"] * 20 + ["full_attention"] * 10,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 32,
        "linear_conv_kernel_dim": 4,
    }
    assert cache_bytes_per_token(hybrid) == 23_040 / 3
    # 20 layers, 4 bytes: three tokens' channels (queries, keys, values), and a matrix of 16 x 32 for each value head
    assert state_bytes_per_sequence(hybrid) == 20 * 4 * (3 * (32 + 32 + 128) + 4 * 16 * 32) == 209_920
    assert plan(hybrid, WEIGHTS).state_bytes == 4 * 2 * 209_920
    planned = plan(hybrid, WEIGHTS, available_bytes=10**9)
    assert planned.max_sequences > 64
    assert planned.state_bytes == planned.max_sequences * 2 * 209_920
    assert planned.total_bytes == WEIGHTS + planned.cache_bytes + planned.scratch_bytes + planned.state_bytes
    assert state_bytes_per_sequence(SMOLLM2) == plan(SMOLLM2, WEIGHTS).state_bytes == 0


def test_the_context_is_the_models_own_where_it_fits() -> None:
    planned = plan(SMOLLM2, WEIGHTS, available_bytes=10**9)
    assert planned.context_length == 8192
    assert planned.cache_bytes == planned.cache_tokens * 23_040
    assert planned.total_bytes == WEIGHTS + planned.cache_bytes + planned.scratch_bytes
    assert plan(SMOLLM2, WEIGHTS).context_length == 8192, "nothing is known of the memory"


@pytest.mark.parametrize("available", [5 * 10**8, 10**9, 3 * 10**9, 10**10])
def test_a_quarter_of_what_is_left_goes_to_more_chats_at_once(available: int) -> None:
    planned = plan(SMOLLM2, WEIGHTS, available_bytes=available)
    left = 0.9 * available - WEIGHTS - planned.scratch_bytes - 8192 * 23_040
    more = planned.cache_tokens - 8192
    assert more % 256 == 0
    assert more * 23_040 <= left / 4
    assert more == 3 * 8192 or left / 4 < (more + 256) * 23_040
    assert plan(SMOLLM2, WEIGHTS, context_length=512, available_bytes=available).cache_tokens == 4 * 512


def test_nothing_known_of_the_memory_is_room_for_one_context() -> None:
    planned = plan(SMOLLM2, WEIGHTS)
    assert (planned.context_length, planned.cache_tokens, planned.max_sequences) == (8192, 8192, 256)


def test_less_memory_gives_a_shorter_context_and_leaves_a_tenth() -> None:
    planned = plan(SMOLLM2, WEIGHTS, available_bytes=200_000_000)
    assert 256 < planned.context_length < 8192
    assert planned.context_length % 256 == 0
    assert planned.total_bytes <= 180_000_000 < planned.total_bytes + 256 * 23_040


def test_too_little_memory_is_refused_with_the_arithmetic() -> None:
    with pytest.raises(
        OutOfMemory, match=r"needs 1\d\d MB, and 95 MB are free: 90 MB weights \+ 6 MB for 256"
    ) as caught:
        plan(SMOLLM2, WEIGHTS, available_bytes=95_000_000)
    assert caught.value.hint == "choose a smaller model, or free memory"


def test_a_context_that_was_asked_for_is_never_shortened() -> None:
    assert plan(SMOLLM2, WEIGHTS, context_length=2048, available_bytes=10**9).context_length == 2048
    with pytest.raises(OutOfMemory, match="8,192 tokens of context") as caught:
        plan(SMOLLM2, WEIGHTS, context_length=8192, available_bytes=200_000_000)
    offered = int(caught.value.hint.rpartition("=")[2])
    assert plan(SMOLLM2, WEIGHTS, context_length=offered, available_bytes=200_000_000).context_length == offered


@pytest.mark.parametrize("wrong", [0, 1, -5, True, 2.5, "2048"])
def test_an_impossible_context_is_refused(wrong: int) -> None:
    with pytest.raises(InvalidOption, match="is impossible"):
        plan(SMOLLM2, WEIGHTS, context_length=wrong)


def test_a_context_beyond_the_models_is_refused() -> None:
    with pytest.raises(InvalidOption, match="context_length=8,193 is more than"):
        plan(SMOLLM2, WEIGHTS, context_length=8193)


def test_the_limit_of_decoding_is_bandwidth_over_what_a_token_reads() -> None:
    assert decode_limit(90_000_000, 10_000_000, 24e9) == 240


def test_weights_that_do_not_fit_are_offered_quantized() -> None:
    smaller = {"int8": 50_000_000, "int4": 30_000_000}
    for available, hint in (
        (90_000_000, 'load it with quantization="int8": its weights then take 50 MB'),
        (60_000_000, 'load it with quantization="int4": its weights then take 30 MB'),
        (20_000_000, "choose a smaller model, or free memory"),
    ):
        with pytest.raises(OutOfMemory) as caught:
            plan(SMOLLM2, WEIGHTS, available_bytes=available, smaller=smaller)
        assert caught.value.hint == hint


def test_other_numbers_in_the_cache_by_hand() -> None:
    assert cache_bytes_per_token(SMOLLM2, (4, 0)) == 2 * 23_040
    # bytes, and four for the scale of each head
    assert cache_bytes_per_token(SMOLLM2, (1, 4)) == 2 * 30 * 3 * (64 + 4) == 12_240
    assert plan(SMOLLM2, WEIGHTS, cache_bytes=(1, 4)).cache_bytes == 8192 * 12_240


def test_one_token_reads_its_own_experts_only() -> None:
    mixture = {"num_experts": 8, "num_experts_per_tok": 2}
    sizes = {"lm_head.weight": 200, "model.layers.0.mlp.experts.gate_proj.weight": 600, "m.mlp.shared_expert.x": 200}
    assert active_bytes(mixture, 1000, sizes) == 400 + 600 * 2 // 8
    assert active_bytes(mixture, 500, sizes) == 275, "packed in half the bytes"
    assert active_bytes({}, 1000, {"lm_head.weight": 500}) == 1000, "no mixture"
