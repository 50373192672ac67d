"""Tiny random models of every family, made by transformers. Needs torch; used by `make oracle` only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from transformers import (
    DeepseekV2Config,
    DeepseekV2ForCausalLM,
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Gemma4ForCausalLM,
    Gemma4TextConfig,
    GptOssConfig,
    GptOssForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Ministral3Config,
    Ministral3ForCausalLM,
    MinistralConfig,
    MinistralForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2MoeConfig,
    Qwen2MoeForCausalLM,
    Qwen3_5ForCausalLM,
    Qwen3_5MoeForCausalLM,
    Qwen3_5MoeTextConfig,
    Qwen3_5TextConfig,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
    SmolLM3Config,
    SmolLM3ForCausalLM,
)

NUM_PROMPT_TOKENS = 40
NUM_GREEDY_TOKENS = 64

SMALL = {
    "vocab_size": 256,
    "hidden_size": 48,
    "intermediate_size": 88,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@dataclass(frozen=True, slots=True)
class TinyModel:
    """One model to make: the classes, what differs from `SMALL`, and how it is written to disk."""

    config_class: type
    model_class: type
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    """Chosen so that greedy decoding varies and no step is a near tie."""
    max_shard_size: str = "50GB"
    has_old_rope_words: bool = False
    """Writes `rope_theta` and `rope_scaling`, as checkpoints did before transformers 5."""

    def build(self, *, seed: int | None = None) -> PreTrainedModel:
        """The model in float32, ready to run, with logits that spread like a trained model's."""
        model = self.model_class(self.config_class(**{**SMALL, **self.options})).eval()
        spread_weights(model, self.seed if seed is None else seed)
        return model


SMALL_LATENT = {
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
    "moe_intermediate_size": 24,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "tie_word_embeddings": True,
}

TINY_MODELS = {
    "llama-tied": TinyModel(
        LlamaConfig, LlamaForCausalLM, {"num_key_value_heads": 4, "tie_word_embeddings": True}, seed=7
    ),
    "llama3-rope": TinyModel(
        LlamaConfig,
        LlamaForCausalLM,
        {
            "num_key_value_heads": 2,
            "head_dim": 20,
            "tie_word_embeddings": False,
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 5000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
            "eos_token_id": [2, 3],
        },
        seed=2,
        max_shard_size="150KB",
        has_old_rope_words=True,
    ),
    "mistral-full": TinyModel(
        MistralConfig, MistralForCausalLM, {"num_key_value_heads": 2, "sliding_window": None}, seed=5
    ),
    "mistral-window": TinyModel(
        MistralConfig, MistralForCausalLM, {"num_key_value_heads": 1, "head_dim": 16, "sliding_window": 16}
    ),
    "qwen2": TinyModel(
        Qwen2Config,
        Qwen2ForCausalLM,
        {
            "num_key_value_heads": 2,
            "tie_word_embeddings": True,
            "use_sliding_window": False,
            "sliding_window": 8,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
        },
        seed=9,
    ),
    "gemma4": TinyModel(
        Gemma4TextConfig,
        Gemma4ForCausalLM,
        {
            "hidden_size": 32,
            "intermediate_size": 40,
            "num_hidden_layers": 4,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "global_head_dim": 32,
            "sliding_window": 16,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "num_kv_shared_layers": 2,
            "use_double_wide_mlp": True,
            "vocab_size_per_layer_input": 256,
            "hidden_size_per_layer_input": 16,
            "final_logit_softcapping": 30.0,
        },
        seed=8,
    ),
    "gemma4-keys-as-values": TinyModel(
        Gemma4TextConfig,
        Gemma4ForCausalLM,
        {
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 3,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "global_head_dim": 32,
            "num_global_key_value_heads": 1,
            "attention_k_eq_v": True,
            "sliding_window": 16,
            "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
            "hidden_size_per_layer_input": 0,
        },
    ),
    "deepseek-v2": TinyModel(
        DeepseekV2Config,
        DeepseekV2ForCausalLM,
        {
            **SMALL_LATENT,
            "q_lora_rank": None,
            "n_routed_experts": 6,
            "topk_method": "group_limited_greedy",
            "n_group": 3,
            "topk_group": 2,
            "n_shared_experts": 2,
            "routed_scaling_factor": 1.5,
        },
        seed=1,
    ),
    "deepseek-v3": TinyModel(
        DeepseekV3Config,
        DeepseekV3ForCausalLM,
        {
            **SMALL_LATENT,
            "q_lora_rank": 24,
            "n_routed_experts": 8,
            "n_group": 4,
            "topk_group": 2,
            "n_shared_experts": 1,
            "num_mtp_layers": 0,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 1000.0,
                "factor": 4.0,
                "mscale": 1.0,
                "mscale_all_dim": 0.8,
                "original_max_position_embeddings": 64,
            },
        },
        seed=3,
    ),
    "gemma4-experts": TinyModel(
        Gemma4TextConfig,
        Gemma4ForCausalLM,
        {
            "hidden_size": 32,
            "intermediate_size": 40,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "global_head_dim": 32,
            "sliding_window": 16,
            "layer_types": ["sliding_attention", "full_attention"],
            "hidden_size_per_layer_input": 0,
            "enable_moe_block": True,
            "num_experts": 6,
            "top_k_experts": 2,
            "moe_intermediate_size": 24,
        },
        seed=7,
    ),
    "qwen3.5-moe": TinyModel(
        Qwen3_5MoeTextConfig,
        Qwen3_5MoeForCausalLM,
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 32,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 2,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "layer_types": ["linear_attention", "full_attention"],
            "num_experts": 6,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "shared_expert_intermediate_size": 32,
            "tie_word_embeddings": False,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.25},
        },
        seed=9,
    ),
    "qwen3.5": TinyModel(
        Qwen3_5TextConfig,
        Qwen3_5ForCausalLM,
        {
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 4,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 32,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "layer_types": ["linear_attention", "full_attention", "linear_attention", "linear_attention"],
            "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.25},
        },
        seed=4,
    ),
    "qwen2-window": TinyModel(
        Qwen2Config,
        Qwen2ForCausalLM,
        {
            "num_key_value_heads": 2,
            "use_sliding_window": True,
            "sliding_window": 12,
            "max_window_layers": 1,
            "tie_word_embeddings": True,
        },
        seed=7,
    ),
    "qwen3": TinyModel(
        Qwen3Config,
        Qwen3ForCausalLM,
        {"num_key_value_heads": 2, "head_dim": 20, "tie_word_embeddings": True},
        seed=12,
    ),
    "smollm3": TinyModel(
        SmolLM3Config,
        SmolLM3ForCausalLM,
        {
            "num_key_value_heads": 2,
            "hidden_size": 40,
            "intermediate_size": 56,
            "num_hidden_layers": 4,
            "tie_word_embeddings": True,
            "pad_token_id": 0,
        },
        seed=7,
    ),
    "ministral-alternating": TinyModel(
        MinistralConfig,
        MinistralForCausalLM,
        {
            "num_key_value_heads": 2,
            "head_dim": 16,
            "sliding_window": 16,
            "tie_word_embeddings": True,
            "layer_types": ["full_attention", "sliding_attention"],
        },
        seed=1,
    ),
    "ministral3": TinyModel(
        Ministral3Config,
        Ministral3ForCausalLM,
        {
            "num_key_value_heads": 2,
            "head_dim": 16,
            "tie_word_embeddings": True,
            "pad_token_id": 0,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 5000.0,
                "factor": 8.0,
                "original_max_position_embeddings": 32,
                "beta_fast": 4.0,
                "beta_slow": 1.0,
                "mscale": 1.0,
                "mscale_all_dim": 0.7,
                "llama_4_scaling_beta": 0.4,
            },
        },
        seed=2,
    ),
    "gemma2": TinyModel(
        Gemma2Config,
        Gemma2ForCausalLM,
        {
            "num_key_value_heads": 2,
            "head_dim": 16,
            "query_pre_attn_scalar": 24,
            "sliding_window": 12,
            "pad_token_id": 0,
            "attn_logit_softcapping": 5.0,
            "final_logit_softcapping": 6.0,
        },
        seed=25,
    ),
    "gemma3": TinyModel(
        Gemma3TextConfig,
        Gemma3ForCausalLM,
        {
            "num_key_value_heads": 1,
            "head_dim": 16,
            "query_pre_attn_scalar": 16,
            "num_hidden_layers": 3,
            "hidden_size": 40,
            "intermediate_size": 64,
            "sliding_window": 12,
            "sliding_window_pattern": 3,
            "pad_token_id": 0,
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
                "full_attention": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
            },
        },
        seed=1,
    ),
    # Its prompt is short and its text becomes long.
    "phi3-crossing": TinyModel(
        Phi3Config,
        Phi3ForCausalLM,
        {
            "num_key_value_heads": 4,
            "sliding_window": 60,
            "pad_token_id": 0,
            "tie_word_embeddings": True,
            "original_max_position_embeddings": 64,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 1000.0,
                "short_factor": [1.0, 1.1, 1.2, 1.4, 1.8, 2.5],
                "long_factor": [1.2, 1.7, 2.6, 4.0, 9.0, 16.0],
            },
        },
        seed=4,
    ),
    "phi4-long": TinyModel(
        Phi3Config,
        Phi3ForCausalLM,
        {
            "num_key_value_heads": 2,
            "hidden_size": 64,
            "num_hidden_layers": 1,
            "pad_token_id": 0,
            "tie_word_embeddings": True,
            "original_max_position_embeddings": 32,
            "partial_rotary_factor": 0.75,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 1000.0,
                "partial_rotary_factor": 0.75,
                "short_factor": [1.0, 1.1, 1.2, 1.4, 1.8, 2.5],
                "long_factor": [1.2, 1.7, 2.6, 4.0, 9.0, 16.0],
            },
        },
        seed=4,
    ),
}

SMALL_MOE = {"num_key_value_heads": 2, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2}
TINY_MODELS |= {
    "mixtral": TinyModel(
        MixtralConfig,
        MixtralForCausalLM,
        {**SMALL_MOE, "intermediate_size": 24, "num_local_experts": 5, "num_experts_per_tok": 2},
    ),
    "qwen2-moe": TinyModel(
        Qwen2MoeConfig,
        Qwen2MoeForCausalLM,
        {
            **SMALL_MOE,
            "num_experts": 6,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 40,
        },
        seed=7,
    ),
    "qwen2-moe-some": TinyModel(
        Qwen2MoeConfig,
        Qwen2MoeForCausalLM,
        {
            **SMALL_MOE,
            "hidden_size": 32,
            "num_hidden_layers": 4,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "intermediate_size": 40,
            "moe_intermediate_size": 16,
            "shared_expert_intermediate_size": 16,
            "norm_topk_prob": True,
            "decoder_sparse_step": 2,
            "mlp_only_layers": [3],
        },
        seed=1,
    ),
    "qwen3-moe": TinyModel(
        Qwen3MoeConfig,
        Qwen3MoeForCausalLM,
        {
            **SMALL_MOE,
            "head_dim": 16,
            "num_experts": 6,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 20,
            "norm_topk_prob": True,
        },
        seed=8,
    ),
    "gpt-oss": TinyModel(
        GptOssConfig,
        GptOssForCausalLM,
        {
            **SMALL_MOE,
            "head_dim": 16,
            "intermediate_size": 24,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "sliding_window": 16,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 1500.0,
                "factor": 4.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "truncate": False,
                "original_max_position_embeddings": 64,
            },
        },
        seed=40,
    ),
}


def spread_weights(model: PreTrainedModel, seed: int) -> None:
    """Draw all weights anew so that every part of the model matters to the logits.

    Matrices get variance 1.5 / fan-in, norms lie around 1, other vectors around 0, and the output spreads by about 2.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith(("norm.weight", "layernorm_1.weight", "layernorm_2.weight")):
                # Some families store a norm's distance from 1, and what Gemma's layers add must be heard beside its
                # large embeddings.
                center = 3 if "post_feedforward" in name else parameter.mean()
                if model.config.model_type == "gemma4_text" and "self_attn" in name:
                    center = 0.5  # these norms alone scale its scores
                parameter.copy_(center + 0.2 * noise)
            elif name.endswith("router.scale"):
                parameter.copy_(6 + noise)  # so that no two experts are nearly as good
            elif name.endswith("per_expert_scale"):
                parameter.copy_(1 + 0.2 * noise)
            elif name.endswith("gate_up_proj_bias"):
                parameter.copy_(4 * noise)  # beyond the bounds of GPT-OSS's activation
            elif parameter.dim() == 1 or name.endswith("bias"):  # sinks, and how fast a state decays, too
                parameter.copy_(0.5 * noise)
            elif name.startswith(("model.embed_tokens", "lm_head")):
                parameter.copy_(noise * 2 / parameter.shape[1] ** 0.5)
            else:
                parameter.copy_(noise * (1.5 / parameter.shape[1]) ** 0.5)
        for name, buffer in model.named_buffers():
            if name.endswith("layer_scalar"):
                buffer.copy_(1 + 0.2 * torch.randn(buffer.shape, generator=generator))
            if name.endswith("e_score_correction_bias"):
                buffer.copy_(0.2 * torch.randn(buffer.shape, generator=generator))


def make_prompt(vocab_size: int, seed: int = 0) -> np.ndarray:
    """A prompt of ordinary (not special) token ids: int32, shape (40,)."""
    return np.random.default_rng(seed).integers(4, vocab_size, NUM_PROMPT_TOKENS, dtype=np.int32)


def logits_of(model: PreTrainedModel, token_ids: np.ndarray) -> np.ndarray:
    """Logits after every token: float32, shape (tokens, vocab_size)."""
    with torch.no_grad():
        return model(torch.tensor(token_ids[None].astype(np.int64))).logits[0].float().numpy()


def greedy_of(model: PreTrainedModel, prompt: np.ndarray) -> tuple[np.ndarray, float]:
    """64 greedy tokens after the prompt, int32, and the smallest lead that any of them had over its rival."""
    token_ids = prompt
    lead = float("inf")
    for _ in range(NUM_GREEDY_TOKENS):
        last = logits_of(model, token_ids)[-1]
        second, first = np.argsort(last)[-2:]
        lead = min(lead, float(last[first] - last[second]))
        token_ids = np.append(token_ids, np.int32(first))
    return token_ids[len(prompt) :], lead
