"""The default model in transformers, with the weights that the `gguf` package unpacks."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from gguf_reference import read_weights


def load_reference(path: Path) -> PreTrainedModel:
    """A transformers model in float32 with exactly the numbers that the file holds."""
    fields = gguf.GGUFReader(path).fields

    def value(name: str) -> float:
        return fields[f"llama.{name}"].contents()

    config = LlamaConfig(
        vocab_size=value("vocab_size"),
        hidden_size=value("embedding_length"),
        intermediate_size=value("feed_forward_length"),
        num_hidden_layers=value("block_count"),
        num_attention_heads=value("attention.head_count"),
        num_key_value_heads=value("attention.head_count_kv"),
        max_position_embeddings=value("context_length"),
        rms_norm_eps=value("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": value("rope.freq_base")},
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(config).eval()
    weights = {name: torch.from_numpy(tensor.copy()) for name, tensor in read_weights(path).items()}
    absent = model.load_state_dict(weights, strict=False)
    assert absent.missing_keys == ["lm_head.weight"], absent
    assert not absent.unexpected_keys, absent
    model.tie_weights()
    return model


def tokenize(path: Path, text: str) -> np.ndarray:
    """Token ids by transformers' own reading of the file's vocabulary: int32."""
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    return np.array(tokenizer(text, add_special_tokens=False)["input_ids"], dtype=np.int32)
