"""Tiny random models of every family, made by transformers. Needs torch; used by `make oracle` only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
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
}


def spread_weights(model: PreTrainedModel, seed: int) -> None:
    """Draw all weights anew so that every part of the model matters to the logits.

    Matrices get variance 1.5 / fan-in, norms lie around 1, other vectors around 0, and the output spreads by about 2.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if name.endswith("norm.weight"):
                parameter.copy_(parameter.mean() + 0.2 * noise)  # some families store a norm's distance from 1
            elif parameter.dim() == 1:  # biases, and how fast a state decays
                parameter.copy_(0.5 * noise)
            elif name.startswith(("model.embed_tokens", "lm_head")):
                parameter.copy_(noise * 2 / parameter.shape[1] ** 0.5)
            else:
                parameter.copy_(noise * (1.5 / parameter.shape[1]) ** 0.5)


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
