"""GGUF's names in Hugging Face's words, against the gguf package's own tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf as reference
import pytest

from gguf_bytes import LLAMA, LLAMA_TENSORS, Entry, write_llama
from kaiwa.errors import UnsupportedModel, UnusableFile
from kaiwa.weights.checkpoint import Checkpoint
from kaiwa.weights.gguf_families import FAMILIES, VARIANTS, Family
from kaiwa.weights.names import tensor_name
from kaiwa.weights.open import open_checkpoint

# Not in Hugging Face's checkpoints, or there without a suffix that the package's table could keep.
OURS_ALONE = {
    "rope_freqs.weight",
    "blk.{N}.attn_rot_embd.weight",
    "blk.{N}.attn_sinks.weight",
    "blk.{N}.exp_probs_b.bias",
    "blk.{N}.layer_output_scale.weight",
    "blk.{N}.ffn_gate_inp.scale",
    "blk.{N}.ffn_gate_up_exps.weight",
    "blk.{N}.ffn_down_exps.scale",
    "blk.{N}.ssm_a",
    "blk.{N}.ssm_dt.bias",
    *(name for name in FAMILIES["qwen35"].tensors if ".nextn." in name),
}
ALL = [*FAMILIES.items(), *((architecture, variant.family) for architecture, variant in VARIANTS.items())]


def opened(
    tmp_path: Path, changes: dict[str, Any] | None = None, tensors: tuple[Entry, ...] = LLAMA_TENSORS
) -> Checkpoint:
    checkpoint = open_checkpoint(write_llama(tmp_path / "model.gguf", changes, tensors))
    checkpoint.close()
    return checkpoint


@pytest.mark.parametrize(("architecture", "family"), ALL)
def test_names_go_back_to_gguf_through_the_gguf_packages_table(architecture: str, family: Family) -> None:
    number = next(arch for arch, name in reference.MODEL_ARCH_NAMES.items() if name == architecture)
    table = reference.get_tensor_name_map(number, 13)
    for pattern in family.tensors.keys() - OURS_ALONE:
        ours = pattern.replace("{N}", "12")
        theirs = tensor_name(family, ours, path="m.gguf")
        assert table.get_name(theirs, try_suffixes=(".weight", ".bias")) == ours


@pytest.mark.parametrize(("architecture", "family"), ALL)
def test_every_tensor_that_the_gguf_package_knows_has_a_name(architecture: str, family: Family) -> None:
    number = next(arch for arch, name in reference.MODEL_ARCH_NAMES.items() if name == architecture)
    for tensor in reference.MODEL_TENSORS[number]:
        name = reference.TENSOR_NAMES[tensor].replace("{bid}", "0")
        name += {"blk.0.ssm_a": "", "blk.0.ssm_dt": ".bias", "blk.0.exp_probs_b": ".bias"}.get(name, ".weight")
        is_of_experts = any(part in name for part in ("_exp", "gate_inp", "ffw_norm_1", "ffw_norm_2"))
        if "expert_count" in family.keys or not is_of_experts:
            assert tensor_name(family, name, path="m.gguf")


@pytest.mark.parametrize("name", ["blk.0.ffn_gate_exps.weight", "blk.00.attn_q.weight", "blk.x.attn_q.weight", "", "x"])
def test_a_tensor_of_another_family_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedModel, match=f"'{name}'"):
        tensor_name(FAMILIES["llama"], name, path="m.gguf")


def test_a_whole_llama(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path)
    assert checkpoint.kind == "GGUF"
    assert checkpoint.config == {
        "model_type": "llama", "num_hidden_layers": 1, "max_position_embeddings": 128, "hidden_size": 8,
        "intermediate_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
        "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "rope_interleaved": True, "vocab_size": 4,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}, "sliding_window": None,
        "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False, "hidden_act": "silu",
        "bos_token_id": 0, "eos_token_id": [1, 3],
    }  # fmt: skip
    assert checkpoint.generation_config == {"bos_token_id": 0, "eos_token_id": [1, 3]}
    assert checkpoint.tensors["model.layers.0.self_attn.k_proj.weight"].shape == (4, 8)
    assert checkpoint.metadata["tokenizer.ggml.tokens"] == ["a", "b", "é", "<|im_end|>"]


def test_an_output_matrix_and_biases_are_seen(tmp_path: Path) -> None:
    more = (Entry("output.weight", (4, 8)), Entry("blk.0.attn_q.bias", (8,)), Entry("rope_freqs.weight", (2,)))
    checkpoint = opened(tmp_path, tensors=LLAMA_TENSORS + more)
    assert checkpoint.config["tie_word_embeddings"] is False
    assert checkpoint.config["attention_bias"] is True
    assert {"lm_head.weight", "model.layers.0.self_attn.q_proj.bias", "rope_freqs.weight"} <= checkpoint.tensors.keys()


def test_qwen2_is_not_interleaved_and_has_no_window(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        key.replace("llama", "qwen2"): value
        for key, value in {
            "llama.block_count": 1, "llama.context_length": 128, "llama.embedding_length": 8,
            "llama.feed_forward_length": 16, "llama.attention.head_count": 2, "llama.rope.freq_base": 1e6,
            "llama.attention.sliding_window": 64,
        }.items()
    }  # fmt: skip
    config = opened(tmp_path, {**changes, "general.architecture": "qwen2"}).config
    assert config["model_type"] == "qwen2"
    assert not config.get("rope_interleaved")
    assert config["sliding_window"] is None
    assert config["num_key_value_heads"] == 2


def test_a_llama_that_counts_experts_is_a_mixtral(tmp_path: Path) -> None:
    changes = {"llama.expert_count": 8, "llama.expert_used_count": 3}
    router = Entry("blk.0.ffn_gate_inp.weight", (8, 8))
    checkpoint = opened(tmp_path, changes, (*LLAMA_TENSORS, router))
    assert checkpoint.config["model_type"] == "mixtral"
    assert (checkpoint.config["num_experts"], checkpoint.config["num_experts_per_tok"]) == (8, 3)
    assert checkpoint.config["rope_interleaved"]
    assert "model.layers.0.block_sparse_moe.gate.weight" in checkpoint.tensors


@pytest.mark.parametrize(("gating", "family"), [(None, "deepseek_v2"), (1, "deepseek_v2"), (2, "deepseek_v3")])
def test_a_deepseek_whose_experts_are_chosen_by_sigmoids_is_a_v3(
    tmp_path: Path, gating: int | None, family: str
) -> None:
    config = config_of_family(
        tmp_path,
        "deepseek2",
        {
            "attention.kv_lora_rank": 4, "attention.key_length_mla": 6, "attention.value_length_mla": 4,
            "rope.dimension_count": 2, "leading_dense_block_count": 1, "expert_count": 8, "expert_used_count": 2,
            "expert_feed_forward_length": 16, "expert_shared_count": 1, "expert_gating_func": gating,
            "rope.scaling.type": "yarn", "rope.scaling.factor": 40.0, "rope.scaling.yarn_log_multiplier": 0.0707,
        },
    )  # fmt: skip
    assert config["model_type"] == family
    assert (config["qk_nope_head_dim"], config["qk_rope_head_dim"], config["v_head_dim"]) == (4, 2, 4)
    assert (config["rope_parameters"]["mscale"], config["rope_parameters"]["mscale_all_dim"]) == (0.707, 0.707)
    assert (config["n_group"], config["norm_topk_prob"], config["routed_scaling_factor"]) == (1, False, 1.0)
    assert config["topk_method"] == "greedy"


@pytest.mark.parametrize(
    ("architecture", "family"), [("qwen2vl", "qwen2"), ("qwen3vl", "qwen3"), ("qwen3vlmoe", "qwen3_moe")]
)
def test_the_text_of_a_model_that_sees(tmp_path: Path, architecture: str, family: str) -> None:
    changes = {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 8}
    more = changes if architecture.endswith("moe") else {}
    config = config_of_family(
        tmp_path, architecture, {"rope.dimension_sections": [24, 20, 20, 0], "n_deepstack_layers": 3, **more}
    )
    assert config["model_type"] == family
    assert config["rope_parameters"]["rope_type"] == "default"


def test_sampling_defaults_are_read_as_a_person_would_write_them(tmp_path: Path) -> None:
    changes = {
        "general.sampling.temp": 0.7, "general.sampling.top_k": 20, "general.sampling.top_p": 0.9,
        "general.sampling.min_p": 0.05, "general.sampling.penalty_repeat": 1.1,
    }  # fmt: skip
    assert opened(tmp_path, changes).generation_config == {
        "temperature": 0.7, "top_k": 20, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 1.1,
        "bos_token_id": 0, "eos_token_id": [1, 3],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"llama.rope.scaling.type": "none"}, {"rope_type": "default"}),
        (
            {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0},
            {"rope_type": "linear", "factor": 4.0},
        ),
        ({"llama.rope.scaling.factor": 4.0}, {"rope_type": "linear", "factor": 4.0}),
        ({"llama.rope.scale_linear": 4.0}, {"rope_type": "linear", "factor": 4.0}),
        (
            {
                "llama.rope.scaling.type": "yarn",
                "llama.rope.scaling.factor": 4.0,
                "llama.rope.scaling.original_context_length": 64,
            },
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
        ),
    ],
)
def test_rope_scaling(tmp_path: Path, changes: dict[str, Any], expected: dict[str, Any]) -> None:
    assert opened(tmp_path, changes).config["rope_parameters"] == {**expected, "rope_theta": 500000.0}


def test_one_size_for_all_layers_is_a_size(tmp_path: Path) -> None:
    assert opened(tmp_path, {"llama.attention.head_count_kv": [1, 1, 1]}).config["num_key_value_heads"] == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"general.architecture": "mamba"}, "family 'mamba'; the built-in engine knows llama, qwen2"),
        ({"llama.attention.head_count_kv": [1, 2]}, "llama.attention.head_count_kv that differs from layer to layer"),
        ({"llama.rope.scaling.type": "spiral"}, "llama.rope.scaling.type 'spiral'"),
        ({"llama.attention.key_length": 4, "llama.attention.value_length": 2}, "4 numbers in its keys and 2"),
    ],
)
def test_what_no_engine_here_runs(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        opened(tmp_path, changes)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"general.architecture": None}, "general.architecture, which names the model's family, is missing"),
        ({"llama.block_count": None}, "llama.block_count is missing; it must be a whole number above 0"),
        ({"llama.embedding_length": 0}, "llama.embedding_length is 0"),
        ({"llama.rope.freq_base": -1.0}, "llama.rope.freq_base is -1.0"),
        ({"tokenizer.ggml.eos_token_id": 4}, "tokenizer.ggml.eos_token_id is 4, and the vocabulary has 4 tokens"),
        ({"tokenizer.ggml.bos_token_id": "a"}, "tokenizer.ggml.bos_token_id is 'a'"),
        ({"tokenizer.ggml.tokens": 3}, "tokenizer.ggml.tokens is not a list of texts"),
        ({"tokenizer.ggml.tokens": ["a"] * 5}, "it has 5 tokens, and 'token_embd.weight' only 4 rows"),
    ],
)
def test_a_configuration_that_cannot_be(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(UnusableFile) as caught:
        opened(tmp_path, changes)
    assert "model.gguf is not a usable GGUF file: " in str(caught.value)
    assert expected in str(caught.value)


def test_a_vocabulary_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(UnusableFile, match=r"holds no tensor 'token_embd\.weight'"):
        opened(tmp_path, tensors=())


def config_of_family(tmp_path: Path, architecture: str, changes: dict[str, Any]) -> Mapping[str, Any]:
    keys = {key.replace("llama.", f"{architecture}."): value for key, value in LLAMA.items()}
    without = {key: None for key in LLAMA if key.startswith("llama.")}
    renamed = {f"{architecture}.{key}": value for key, value in changes.items()}
    tensors = tuple(entry for entry in LLAMA_TENSORS if not entry.name.startswith("blk."))
    return opened(tmp_path, {**without, **keys, "general.architecture": architecture, **renamed}, tensors).config


def test_gemma_files_hold_norms_with_their_one(tmp_path: Path) -> None:
    config = config_of_family(tmp_path, "gemma2", {"attention.key_length": 256, "final_logit_softcapping": 20.0})
    assert config["norm_offset"] == 0.0
    assert config["final_logit_softcapping"] == 20.0
    assert (config["sliding_window"], config["query_pre_attn_scalar"]) == (4096, 256)


def test_only_the_27b_gemmas_divide_queries_in_their_own_way(tmp_path: Path) -> None:
    changes = {"block_count": 62, "attention.head_count": 2, "attention.key_length": 128}
    assert config_of_family(tmp_path, "gemma3", changes)["query_pre_attn_scalar"] == 4
    assert config_of_family(tmp_path, "gemma3", {**changes, "block_count": 34})["query_pre_attn_scalar"] == 128


@pytest.mark.parametrize(
    ("changes", "windows"),
    [
        ({}, None),
        ({"attention.sliding_window": 8}, "SSSSSFS"),
        ({"attention.sliding_window": 8, "attention.sliding_window_pattern": 2}, "SFSFSFS"),
        ({"attention.sliding_window": 8, "attention.sliding_window_pattern": [True, False] * 3 + [False]}, "SFSFSFF"),
    ],
)
def test_which_layers_of_gemma3_have_a_window(tmp_path: Path, changes: dict[str, Any], windows: str | None) -> None:
    config = config_of_family(tmp_path, "gemma3", {"block_count": 7, **changes})
    assert config["sliding_window"] == (8 if windows else None)
    assert "".join(layer[0].upper() for layer in config.get("layer_types", [])) == (windows or "")


def test_phi3_turns_a_part_of_each_head_and_has_no_window_of_0(tmp_path: Path) -> None:
    config = config_of_family(tmp_path, "phi3", {"rope.dimension_count": 2, "attention.sliding_window": 0})
    assert config["rope_parameters"]["partial_rotary_factor"] == 0.5
    assert config["sliding_window"] is None


def test_ministral3_has_a_temperature(tmp_path: Path) -> None:
    changes = {
        "rope.scaling.type": "yarn", "rope.scaling.factor": 16.0, "rope.scaling.original_context_length": 16,
        "rope.scaling.yarn_log_multiplier": 1.0, "attention.temperature_scale": 0.1,
    }  # fmt: skip
    config = config_of_family(tmp_path, "mistral3", changes)
    assert config["rope_interleaved"] is True
    assert config["rope_parameters"] == {
        "rope_type": "yarn", "rope_theta": 500000.0, "factor": 16.0, "original_max_position_embeddings": 16,
        "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1,
    }  # fmt: skip
