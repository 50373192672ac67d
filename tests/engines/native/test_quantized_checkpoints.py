"""Checkpoints that other tools quantized: the numbers they mean, their products, and whole models of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kaiwa.engines.engine import Engine
from kaiwa.engines.native import _native, quantized
from kaiwa.engines.native.engine import load
from kaiwa.errors import UnusableFile
from kaiwa.weights.open import open_checkpoint
from kaiwa.weights.quantized import QuantizedTensor
from published_layouts import LAYOUTS, Build, Published, bytes_of, e4m3, fp8, gptq, mxfp4, words, write_tensors
from safetensors_folder import CONFIG

MODULE = "model.layers.0.mlp.up_proj"


def packed(folder: Path, published: Published, rows: slice = slice(None)) -> _native.Matrix:
    """The matrix that the engine makes of a folder with this one weight, or of some rows of it."""
    write(folder, {MODULE: published}, {})
    shape = published.means.shape
    with closing(open_checkpoint(folder)) as checkpoint:
        tensor = checkpoint.tensors[f"{MODULE}.weight"]
        assert isinstance(tensor, QuantizedTensor)
        assert tensor.shape == shape
        first, end, step = rows.indices(shape[0])
        count = len(range(first, end, step))
        if rows != slice(None):
            tensor = tensor.rows(first, end, step)
        return quantized.pack(tensor, count, shape[1], _native.ThreadPool(2))


def write(folder: Path, weights: dict[str, Published], plain: dict[str, np.ndarray], **config: Any) -> None:
    tensors, dtypes = dict(plain), {}
    for module, published in weights.items():
        tensors |= {f"{module}.{suffix}": tensor for suffix, tensor in published.tensors.items()}
        dtypes |= {f"{module}.{suffix}": dtype for suffix, dtype in (published.dtypes or {}).items()}
        config = {**config, "quantization_config": dict(published.settings)}
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**CONFIG, **config}))
    write_tensors(folder / "model.safetensors", tensors, dtypes)


@pytest.mark.parametrize("build", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(("rows", "cols"), [(8, 128), (40, 256), (200, 640)])
def test_unpacks_to_exactly_what_it_means(build: Build, rows: int, cols: int, tmp_path: Path) -> None:
    published = build(np.random.default_rng([rows, cols]), rows, cols)
    unpacked = np.asarray(packed(tmp_path, published).unpack())
    np.testing.assert_array_equal(unpacked.view(np.uint32), published.means.view(np.uint32))


@pytest.mark.parametrize("build", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("rows", [slice(0, 24), slice(136, 200), slice(1, 200, 2), slice(199, 200)], ids=str)
def test_some_rows_of_a_weight(build: Build, rows: slice, tmp_path: Path) -> None:
    published = build(np.random.default_rng(0), 200, 256)
    np.testing.assert_array_equal(np.asarray(packed(tmp_path, published, rows).unpack()), published.means[rows])


def test_rows_that_are_not_there() -> None:
    blocks, exponents, _ = mxfp4(np.random.default_rng(0), 6, 32)
    for first, count, step in ((0, 7, 1), (1, 3, 3), (-1, 2, 1), (0, 1, 0)):
        with pytest.raises(ValueError, match=rf"{count} rows from row {first} are not among 6"):
            _native.pack_mxfp4(blocks, exponents, count, 32, (6, first, step))


@pytest.mark.parametrize("build", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("tokens", [1, 5, 17])
def test_product_stays_within_its_bound(build: Build, tokens: int, isa: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(tokens)
    published = build(rng, 72, 384)
    inputs = rng.standard_normal((tokens, 384), dtype=np.float32)
    matrix = packed(tmp_path, published)
    ours = np.asarray(_native.matmul(matrix, inputs, isa=isa))
    exact = inputs.astype(np.float64) @ published.means.astype(np.float64).T
    sizes = np.abs(published.means.astype(np.float64)).T
    bound = np.abs(inputs) @ sizes * 384 * 2.0**-23
    if not published.is_float:
        # Inputs are rounded by up to half of 1/254 of the range of their block; zero points add to what is summed up.
        steps = np.repeat(np.ptp(inputs.reshape(tokens, -1, 32), axis=-1) / 508, 32, axis=-1)
        bound = 3 * bound + 1.01 * steps @ sizes
    assert (np.abs(ours - exact) <= bound).all()
    together = np.asarray(_native.matmul(matrix, inputs, threads=2, isa=isa))
    np.testing.assert_array_equal(ours, together)
    for token in range(tokens):
        alone = np.asarray(_native.matmul(matrix, inputs[token], isa=isa))
        np.testing.assert_array_equal(alone[0], ours[token])


@pytest.mark.parametrize(("rows", "cols", "block"), [(6, 96, 64), (3, 32, 64), (5, 34, 4)])
def test_blocks_may_run_over_the_ends_of_rows(rows: int, cols: int, block: int, isa: str) -> None:
    rng = np.random.default_rng(cols)
    nibbles = rng.integers(0, 16, rows * cols)
    table, scales = rng.standard_normal(16, dtype=np.float32), rng.random(-(-rows * cols // block), dtype=np.float32)
    matrix = _native.pack_table4(bytes_of(nibbles, high_first=True), table, scales, block, rows, cols)
    means = (table[nibbles] * np.repeat(scales, block)[: rows * cols]).reshape(rows, cols)
    np.testing.assert_array_equal(np.asarray(matrix.unpack()), means)
    inputs = rng.standard_normal((3, cols), dtype=np.float32)
    ours = np.asarray(_native.matmul(matrix, inputs, isa=isa))
    np.testing.assert_allclose(ours, inputs @ means.T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (20, 129), (150, 301)])
def test_tiles_that_end_with_the_matrix(rows: int, cols: int, isa: str) -> None:
    rng = np.random.default_rng(rows)
    published = fp8(rng, rows, cols)
    codes, scales = published.tensors["weight"], published.tensors["weight_scale_inv"]
    matrix = _native.pack_float8(codes, scales, 128, 128, rows, cols)
    np.testing.assert_array_equal(np.asarray(matrix.unpack()), published.means)
    inputs = rng.standard_normal((3, cols), dtype=np.float32)
    ours = np.asarray(_native.matmul(matrix, inputs, isa=isa))
    np.testing.assert_allclose(ours, inputs @ published.means.T, rtol=1e-4, atol=1e-4)


def test_every_number_of_8_bits(isa: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    codes[[0x7F, 0xFF]] = 0
    matrix = _native.pack_float8(codes, np.ones(256, np.float32), 1, 1, 256, 1)
    np.testing.assert_array_equal(np.asarray(matrix.unpack())[:, 0], e4m3(codes))
    product = np.asarray(_native.matmul(matrix, np.ones((1, 1), np.float32), isa=isa))
    np.testing.assert_array_equal(product[0], e4m3(codes))


def test_mxfp4_of_gpt_oss_has_its_columns_in_turn(isa: str) -> None:
    rng = np.random.default_rng(0)
    blocks, exponents, means = mxfp4(rng, 40, 96)
    matrix = _native.pack_mxfp4(blocks, exponents, 40, 96)
    assert matrix.format == "MXFP4"
    np.testing.assert_array_equal(np.asarray(matrix.unpack()), means)
    # By hand: 0x21 is 0.5 in column 0 and 1 in column 1, times 2 to the power of 128 - 127.
    unpacked = _native.pack_mxfp4(b"\x21" * 16, b"\x80", 1, 32).unpack().tolist()
    assert unpacked == [[1.0, 2.0] * 16]


def test_experts_of_gpt_oss_come_apart(tmp_path: Path) -> None:
    """As its family's file takes them: every expert turned upright, then gates apart from what they multiply."""
    blocks, exponents, means = mxfp4(np.random.default_rng(0), 3 * 10, 64)
    name = "model.layers.0.mlp.experts.gate_up_proj"
    tensors = {f"{name}_blocks": blocks.reshape(3, 10, 2, 16), f"{name}_scales": exponents.reshape(3, 10, 2)}
    write(tmp_path, {}, tensors, quantization_config={"quant_method": "mxfp4"})
    with closing(open_checkpoint(tmp_path)) as checkpoint:
        whole = checkpoint.tensors[name]
        assert (whole.shape, whole.num_bytes) == ((3, 64, 10), 3 * 10 * (32 + 2))
        upright = whole.part(2).transposed()
        assert (upright.shape, upright.num_bytes) == ((10, 64), 10 * (32 + 2))
        for first in (0, 1):
            part = upright.rows(first, 10, 2)
            assert isinstance(part, QuantizedTensor)
            matrix = quantized.pack(part, 5, 64, _native.ThreadPool(1))
            np.testing.assert_array_equal(np.asarray(matrix.unpack()), means[20 + first : 30 : 2])


def test_words_of_gptq_and_awq_on_paper() -> None:
    # Row r holds the number r in every column. GPTQ: a word holds eight columns of one row. AWQ: of one column, eight
    # rows, 0 2 4 6 1 3 5 7 from the lowest nibble up. Scale 0.5; zero point 3, which GPTQ stores as 2.
    expected = [[0.5 * (row - 3)] * 32 for row in range(8)]
    scales = np.full(8, 0.5, dtype=np.float32)
    gptq_words = np.array([0x11111111 * row for row in range(8)] * 4, dtype=np.uint32)
    zeros = np.array([0x22222222], dtype=np.uint32)
    assert _native.pack_gptq(gptq_words, zeros, scales, 32, 1, 8, 32).unpack().tolist() == expected
    awq_words = np.full(32, 0x75316420, dtype=np.uint32)
    assert _native.pack_awq(awq_words, zeros + 0x11111111, scales, 32, 8, 32).unpack().tolist() == expected


def test_bytes_of_bitsandbytes_on_paper() -> None:
    table = np.arange(16, dtype=np.float32) - 8
    # The high nibble comes first: 0xF1 is 7 and -7.
    matrix = _native.pack_table4(b"\xf1" * 4, table, np.array([0.5, 2], dtype=np.float32), 4, 1, 8)
    assert matrix.unpack().tolist() == [[3.5, -3.5, 3.5, -3.5, 14.0, -14.0, 14.0, -14.0]]
    int8 = _native.pack_int8(bytes([1, 255] * 16), np.array([0.25], dtype=np.float32), 1, 32)
    assert int8.unpack().tolist() == [[0.25, -0.25] * 16]
    table = np.zeros(256, dtype=np.float32)
    table[7], table[9] = 1.0, -2.0
    nested = _native.unpack_nested(bytes([7, 9, 9]), table, np.array([0.5, 4], dtype=np.float32), 2, 10.0)
    assert nested.tolist() == [[10.5, 9.0, 2.0]]


def test_a_scale_in_single_precision_is_rounded_to_half() -> None:
    nibbles = np.random.default_rng(0).integers(0, 16, (8, 32))
    weights = words(nibbles.reshape(8, -1, 8)).squeeze(-1).T.copy()
    scale = np.float32(0.0123456789)
    matrix = _native.pack_gptq(weights, np.zeros(1, np.int32), np.full(8, scale), 32, 0, 8, 32)
    np.testing.assert_allclose(np.asarray(matrix.unpack()), scale * nibbles, rtol=2.0**-11)


@pytest.mark.parametrize("build", LAYOUTS.values(), ids=LAYOUTS)
def test_a_packed_matrix_is_about_as_large_as_its_parts(build: Build, tmp_path: Path) -> None:
    published = build(np.random.default_rng(0), 128, 4096)
    parts = sum(
        tensor.nbytes for suffix, tensor in published.tensors.items() if "state" not in suffix and suffix != "g_idx"
    )
    # Bytes that stand for bytes' scales become the scales themselves.
    bound = 1.10 if "weight.nested_absmax" in published.tensors else 1.04
    assert packed(tmp_path, published).nbytes <= bound * parts


@pytest.mark.parametrize(
    ("name", "part", "value"),
    [
        ("int8", "SCB", np.nan),
        ("nf4", "weight.absmax", np.inf),
        ("nf4", "weight.quant_map", np.nan),
        ("nf4, nested", "weight.nested_absmax", np.nan),
        ("gptq", "scales", np.inf),
        ("awq", "scales", np.nan),
        ("fp8", "weight_scale_inv", np.nan),
        ("fp8", "weight", 0x7F),
    ],
)
def test_what_is_not_a_number_is_refused(name: str, part: str, value: float, tmp_path: Path) -> None:
    published = LAYOUTS[name](np.random.default_rng(0), 40, 256)
    published.tensors[part].flat[-1] = value
    with pytest.raises(ValueError, match=r"holds a number that is infinite or not a number"):
        packed(tmp_path, published)


HIDDEN, INNER, VOCAB = 128, 256, 96
SHAPES = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (HIDDEN // 2, HIDDEN),
    "self_attn.v_proj": (HIDDEN // 2, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (INNER, HIDDEN),
    "mlp.up_proj": (INNER, HIDDEN),
    "mlp.down_proj": (HIDDEN, INNER),
}
TINY = {
    "hidden_size": HIDDEN, "intermediate_size": INNER, "vocab_size": VOCAB, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip


def tiny_model(build: Build) -> tuple[dict[str, Published], dict[str, np.ndarray]]:
    """Quantized matrices, and the tensors that quantizing tools leave alone."""
    rng = np.random.default_rng(7)
    plain = {name: rng.standard_normal((VOCAB, HIDDEN), dtype=np.float32) for name in ("lm_head", "model.embed_tokens")}
    plain = {f"{name}.weight": 0.1 * table for name, table in plain.items()}
    plain["model.norm.weight"] = np.ones(HIDDEN, dtype=np.float32)
    matrices = {}
    for layer in range(2):
        prefix = f"model.layers.{layer}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            plain[f"{prefix}.{norm}.weight"] = np.ones(HIDDEN, dtype=np.float32)
        matrices |= {f"{prefix}.{name}": build(rng, *shape) for name, shape in SHAPES.items()}
    return matrices, plain


@contextmanager
def loaded_exactly(folder: Path) -> Iterator[Engine]:
    """With keys and values in single precision, so that only the weights differ."""
    with closing(open_checkpoint(folder)) as checkpoint:
        engine = load(checkpoint, threads=2, kv_dtype="float32")
        try:
            yield engine
        finally:
            engine.shutdown()


def check_twins(folder: Path, *, is_float: bool) -> None:
    """Compare the logits of the models in the folders `quantized` and `plain`."""
    prompt = [int(token) for token in np.random.default_rng(1).integers(0, VOCAB, 40)]
    with loaded_exactly(folder / "quantized") as engine:
        ours = np.asarray(engine.score(prompt))
    with loaded_exactly(folder / "plain") as engine:
        expected = np.asarray(engine.score(prompt))
    assert expected.std() > 0.3
    if is_float:
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-3)
    else:  # inputs are rounded to 8 bits
        assert np.sqrt(((ours - expected) ** 2).mean()) < 0.03 * expected.std()


@pytest.mark.parametrize("build", LAYOUTS.values(), ids=LAYOUTS)
def test_a_model_says_what_its_unpacked_twin_says(build: Build, tmp_path: Path, isa: str) -> None:
    matrices, plain = tiny_model(build)
    write(tmp_path / "quantized", matrices, plain, **TINY)
    unpacked = {f"{module}.weight": published.means for module, published in matrices.items()}
    write(tmp_path / "plain", {}, plain | unpacked, **TINY)
    check_twins(tmp_path, is_float=next(iter(matrices.values())).is_float)


@pytest.mark.parametrize("name", ["nf4, nested", "gptq", "fp8"])
def test_fused_projections_come_apart(name: str, tmp_path: Path) -> None:
    _, plain = tiny_model(LAYOUTS[name])
    config = {**TINY, "model_type": "phi3", "tie_word_embeddings": False, "pad_token_id": None}
    shapes = {
        "self_attn.qkv_proj": (2 * HIDDEN, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HIDDEN),
        "mlp.gate_up_proj": (2 * INNER, HIDDEN),
        "mlp.down_proj": (HIDDEN, INNER),
    }
    rng = np.random.default_rng(3)
    matrices = {
        f"model.layers.{layer}.{module}": LAYOUTS[name](rng, *shape)
        for layer in range(2)
        for module, shape in shapes.items()
    }
    write(tmp_path / "quantized", matrices, plain, **config)
    unpacked = {f"{module}.weight": published.means for module, published in matrices.items()}
    write(tmp_path / "plain", {}, plain | unpacked, **config)
    check_twins(tmp_path, is_float=next(iter(matrices.values())).is_float)


def test_gpt_oss_in_mxfp4_says_what_its_unpacked_twin_says(tmp_path: Path) -> None:
    """Every expert is chosen, so that rounding inputs cannot choose others."""
    rng = np.random.default_rng(5)
    hidden, inner, experts, layers = 64, 32, 4, 2
    rope = {"rope_type": "yarn", "rope_theta": 1500.0, "factor": 4.0, "original_max_position_embeddings": 64}
    config = {
        "model_type": "gpt_oss", "hidden_size": hidden, "intermediate_size": inner, "vocab_size": VOCAB, "head_dim": 16,
        "num_hidden_layers": layers, "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": experts,
        "num_experts_per_tok": experts, "max_position_embeddings": 256, "sliding_window": 16,
        "layer_types": ["sliding_attention", "full_attention"], "rope_parameters": rope | {"truncate": False},
        "attention_bias": True, "tie_word_embeddings": True, "rms_norm_eps": 1e-5,
    }  # fmt: skip
    plain = {"model.embed_tokens.weight": 0.1 * rng.standard_normal((VOCAB, hidden), dtype=np.float32)}
    plain["model.norm.weight"] = np.ones(hidden, dtype=np.float32)
    packed_experts, unpacked = {}, {}
    for prefix in (f"model.layers.{layer}" for layer in range(layers)):
        for norm in ("input_layernorm", "post_attention_layernorm"):
            plain[f"{prefix}.{norm}.weight"] = np.ones(hidden, dtype=np.float32)
        plain[f"{prefix}.self_attn.sinks"] = rng.standard_normal(4, dtype=np.float32)
        for module, rows, cols in (("self_attn.q_proj", 64, hidden), ("self_attn.k_proj", 32, hidden),
                                   ("self_attn.v_proj", 32, hidden), ("self_attn.o_proj", hidden, 64),
                                   ("mlp.router", experts, hidden)):  # fmt: skip
            plain[f"{prefix}.{module}.weight"] = 0.1 * rng.standard_normal((rows, cols), dtype=np.float32)
            plain[f"{prefix}.{module}.bias"] = 0.1 * rng.standard_normal(rows, dtype=np.float32)
        for module, rows, cols in (("gate_up_proj", 2 * inner, hidden), ("down_proj", hidden, inner)):
            name = f"{prefix}.mlp.experts.{module}"
            blocks, exponents, means = mxfp4(rng, experts * rows, cols)
            packed_experts[f"{name}_blocks"] = blocks.reshape(experts, rows, -1, 16)
            packed_experts[f"{name}_scales"] = exponents.reshape(experts, rows, -1)
            unpacked[name] = means.reshape(experts, rows, cols).transpose(0, 2, 1).copy()
            plain[f"{name}_bias"] = 0.1 * rng.standard_normal((experts, rows), dtype=np.float32)
    settings = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    write(tmp_path / "quantized", {}, plain | packed_experts, **config, quantization_config=settings)
    write(tmp_path / "plain", {}, plain | unpacked, **config)
    check_twins(tmp_path, is_float=False)


def test_a_broken_weight_is_named_with_its_tensor(tmp_path: Path) -> None:
    matrices, plain = tiny_model(gptq)
    matrices["model.layers.1.mlp.down_proj"].tensors["scales"][1, 5] = np.nan
    write(tmp_path, matrices, plain, **TINY)
    says = r"tensor 'model.layers.1.mlp.down_proj.weight': its part '.*scales' holds"
    with pytest.raises(UnusableFile, match=says), loaded_exactly(tmp_path):
        pass


@pytest.mark.parametrize("name", ["model.norm.weight", "model.layers.1.mlp.up_proj.weight"])
def test_so_is_a_broken_number_of_an_unquantized_model(name: str, tmp_path: Path) -> None:
    matrices, plain = tiny_model(gptq)
    plain |= {f"{module}.weight": published.means for module, published in matrices.items()}
    plain[name].flat[3] = np.inf
    write(tmp_path, {}, plain, **TINY)
    says = f"tensor '{name}': row 0 holds a number that is infinite or not a number"
    with pytest.raises(UnusableFile, match=says), loaded_exactly(tmp_path):
        pass
