"""The default model as it may have been before it was quantized: a Hugging Face folder in bfloat16.

Weights that were 4-bit numbers lie on a grid, which rounding to 4 bits finds again without any loss. So there is a
second one, where each is moved at random within its own step: another model, about as good, that never saw a grid.
"""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from gguf_reference import read_weights, tensor_names

BLOCK_SIZE = 32


def write_unquantized(path: Path, folder: Path, *, off_grid: Path) -> None:
    """Write the model of this GGUF file, of architecture llama, as it is to `folder`, and moved to `off_grid`."""
    reader = gguf.GGUFReader(path)
    names = tensor_names(int(reader.fields["llama.block_count"].contents()))
    steps = {names[tensor.name]: _steps(tensor) for tensor in reader.tensors}
    rng = np.random.default_rng(0)
    weights = read_weights(path)
    _write_folder(folder, weights, reader)
    for name, tensor in weights.items():
        tensor += steps[name] * rng.uniform(-0.5, 0.5, tensor.shape).astype(np.float32)
    _write_folder(off_grid, weights, reader)


def _write_folder(folder: Path, weights: dict[str, np.ndarray], reader: gguf.GGUFReader) -> None:
    folder.mkdir()
    write_bfloat16(folder / "model.safetensors", {name: bfloat16(tensor) for name, tensor in weights.items()})
    (folder / "config.json").write_text(json.dumps(_config(reader)))
    _write_tokenizer(reader, folder)


def _steps(tensor: gguf.ReaderTensor) -> np.ndarray | float:
    """How far apart the numbers are that a block of 4 bits can hold, roughly: float32, shape (rows, 1)."""
    if tensor.tensor_type != gguf.GGMLQuantizationType.Q4_1:
        return 0.0
    blocks = np.asarray(tensor.data).reshape(tensor.shape[1], -1, 20)
    return blocks[:, :, :2].copy().view("<f2")[:, :, 0].astype(np.float32).mean(axis=1, keepdims=True)


def bfloat16(values: np.ndarray) -> np.ndarray:
    """Rounded to nearest, ties to even: uint16."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def write_bfloat16(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Write a safetensors file of numbers that are `bfloat16` already."""
    header, offset = {}, 0
    for name, tensor in tensors.items():
        end = offset + tensor.nbytes
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    encoded = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for tensor in tensors.values():
            file.write(tensor.tobytes())


def _config(reader: gguf.GGUFReader) -> dict[str, object]:
    def value(key: str) -> object:
        return reader.fields[f"llama.{key}"].contents()

    return {
        "model_type": "llama",
        "vocab_size": value("vocab_size"),
        "hidden_size": value("embedding_length"),
        "intermediate_size": value("feed_forward_length"),
        "num_hidden_layers": value("block_count"),
        "num_attention_heads": value("attention.head_count"),
        "num_key_value_heads": value("attention.head_count_kv"),
        "max_position_embeddings": value("context_length"),
        "rms_norm_eps": value("attention.layer_norm_rms_epsilon"),
        "rope_theta": value("rope.freq_base"),
        "tie_word_embeddings": True,
        "eos_token_id": 2,
    }


def _write_tokenizer(reader: gguf.GGUFReader, folder: Path) -> None:
    def values(key: str) -> list[str]:
        return reader.fields[f"tokenizer.ggml.{key}"].contents()

    vocabulary = {text: token_id for token_id, text in enumerate(values("tokens"))}
    merges = [tuple(merge.split(" ")) for merge in values("merges")]
    tokenizer = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = values("token_type")
    controls = [text for text, kind in zip(vocabulary, kinds, strict=True) if kind == gguf.TokenType.CONTROL]
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in controls])
    tokenizer.save(str(folder / "tokenizer.json"))
    template = reader.fields["tokenizer.chat_template"].contents()
    settings = {"eos_token": "<|im_end|>", "bos_token": "<|im_start|>", "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
