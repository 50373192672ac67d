"""Models of a chosen shape with random weights, as GGUF files: their speed is real, their words are not.

    python benchmarks/write_models.py            # all of them
    python benchmarks/write_models.py 1.1b-q4_0  # one

They lie in the folder `benchmarks` of Kaiwa's home, and are written once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter

from kaiwa import paths

Q4_0, Q4_K, Q6_K, Q8_0, F32 = (GGMLQuantizationType[name] for name in ("Q4_0", "Q4_K", "Q6_K", "Q8_0", "F32"))

HALF_FIELDS = {
    Q4_0: {0: 0.005},
    Q8_0: {0: 0.0003},
    Q4_K: {0: 8e-5, 2: 6e-4},
    Q6_K: {208: 1.5e-5},
}
"""Where a block's float16 scales lie, and values that give random bits a deviation of about 0.02."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A model of the Llama or, with experts, of the Mixtral family."""

    weights: GGMLQuantizationType
    head: GGMLQuantizationType
    hidden_size: int = 2048
    num_layers: int = 22
    num_heads: int = 32
    num_kv_heads: int = 4
    intermediate_size: int = 5632
    vocab_size: int = 32000
    num_experts: int = 0
    num_active_experts: int = 0
    context_length: int = 16384


# llama.cpp's own quantizer stores the output head of 4-bit files in Q6_K.
SHAPES = {
    "1.1b-q4_0": Shape(Q4_0, Q6_K),
    "1.1b-q4_k": Shape(Q4_K, Q6_K),
    "1.1b-q8_0": Shape(Q8_0, Q8_0),
    "moe-q4_0": Shape(Q4_0, Q6_K, num_layers=16, intermediate_size=4096, num_experts=8, num_active_experts=2),
}


def model(name: str) -> Path:
    """The path of one of `SHAPES`, written if it is not there yet."""
    path = paths.home() / "benchmarks" / f"{name}.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        write(SHAPES[name], unfinished)
        unfinished.replace(path)
    return path


def write(shape: Shape, path: Path) -> None:
    """Write a model of this shape."""
    writer = GGUFWriter(path, "llama")
    _describe(writer, shape)
    tensors = list(_tensors(shape))
    rng = np.random.default_rng(0)
    pools = {
        kind: _random_blocks(kind, max(_num_bytes(kind, size) for _, of, size in tensors if of is kind), rng)
        for kind in {kind for _, kind, _ in tensors}
        if kind is not F32
    }
    for name, kind, size in tensors:
        if kind is F32:
            is_norm = len(size) == 1
            values = np.ones(size) if is_norm else 0.02 * rng.standard_normal(size)
            writer.add_tensor(name, values.astype(np.float32))
        else:
            data = pools[kind][: _num_bytes(kind, size)].reshape(*size[:-1], -1)
            writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _describe(writer: GGUFWriter, shape: Shape) -> None:
    writer.add_context_length(shape.context_length)
    writer.add_embedding_length(shape.hidden_size)
    writer.add_block_count(shape.num_layers)
    writer.add_feed_forward_length(shape.intermediate_size)
    writer.add_head_count(shape.num_heads)
    writer.add_head_count_kv(shape.num_kv_heads)
    writer.add_rope_dimension_count(shape.hidden_size // shape.num_heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(shape.vocab_size)
    if shape.num_experts:
        writer.add_expert_count(shape.num_experts)
        writer.add_expert_used_count(shape.num_active_experts)
    # The least that llama.cpp takes for a vocabulary: it is never asked for words.
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens + [f"w{index}" for index in range(len(tokens), shape.vocab_size)])
    writer.add_token_scores([-float(index) for index in range(shape.vocab_size)])
    writer.add_token_types(kinds + [gguf.TokenType.NORMAL] * (shape.vocab_size - len(kinds)))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def _tensors(shape: Shape) -> Iterator[tuple[str, GGMLQuantizationType, tuple[int, ...]]]:
    """Name, number format and size, rows first, of every tensor."""
    hidden, ffn = shape.hidden_size, shape.intermediate_size
    kv_size = hidden // shape.num_heads * shape.num_kv_heads
    yield "token_embd.weight", shape.weights, (shape.vocab_size, hidden)
    yield "output_norm.weight", F32, (hidden,)
    yield "output.weight", shape.head, (shape.vocab_size, hidden)
    experts = (shape.num_experts,) if shape.num_experts else ()
    ending = "_exps.weight" if shape.num_experts else ".weight"
    for layer in range(shape.num_layers):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", F32, (hidden,)
        yield block + "attn_q.weight", shape.weights, (hidden, hidden)
        yield block + "attn_k.weight", shape.weights, (kv_size, hidden)
        yield block + "attn_v.weight", shape.weights, (kv_size, hidden)
        yield block + "attn_output.weight", shape.weights, (hidden, hidden)
        yield block + "ffn_norm.weight", F32, (hidden,)
        if shape.num_experts:
            yield block + "ffn_gate_inp.weight", F32, (shape.num_experts, hidden)
        yield block + "ffn_gate" + ending, shape.weights, (*experts, ffn, hidden)
        yield block + "ffn_up" + ending, shape.weights, (*experts, ffn, hidden)
        yield block + "ffn_down" + ending, shape.weights, (*experts, hidden, ffn)


def _num_bytes(kind: GGMLQuantizationType, size: tuple[int, ...]) -> int:
    block_size, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    return int(np.prod(size)) // block_size * block_bytes


def _random_blocks(kind: GGMLQuantizationType, num_bytes: int, rng: np.random.Generator) -> np.ndarray:
    """Random bits in blocks with fixed scales: a pool that all tensors of one format begin in."""
    _, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (num_bytes // block_bytes, block_bytes), dtype=np.uint8)
    for offset, scale in HALF_FIELDS[kind].items():
        blocks[:, offset : offset + 2] = np.array([scale], dtype="<f2").view(np.uint8)
    return blocks.reshape(-1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write models with random weights.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(SHAPES)} (default: all)")
    for chosen in parser.parse_args().names or SHAPES:
        print(model(chosen))
