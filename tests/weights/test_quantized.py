"""What `quantization_config` may say, and what its tensors must be; `engines/native` tests the numbers."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kaiwa.errors import UnsupportedFormat, UnusableFile
from kaiwa.weights.open import open_checkpoint
from kaiwa.weights.quantized import QuantizedTensor
from published_layouts import LAYOUTS, Published, gptq, mxfp4, write_tensors
from safetensors_folder import CONFIG

MODULE = "model.layers.0.self_attn.q_proj"
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}


def write(folder: Path, settings: object, tensors: dict[str, np.ndarray], dtypes: dict[str, str] | None = None) -> Path:
    (folder / "config.json").write_text(json.dumps({**CONFIG, "quantization_config": settings}))
    write_tensors(folder / "model.safetensors", tensors, dtypes)
    return folder


def write_published(folder: Path, published: Published, **settings: Any) -> Path:
    tensors = {f"{MODULE}.{suffix}": tensor for suffix, tensor in published.tensors.items()}
    dtypes = {f"{MODULE}.{suffix}": dtype for suffix, dtype in (published.dtypes or {}).items()}
    return write(folder, {**published.settings, **settings}, tensors, dtypes)


@pytest.mark.parametrize(
    ("name", "format"),
    [("int8", "INT8"), ("nf4, nested", "NF4"), ("fp4", "FP4"), ("gptq", "GPTQ"), ("awq", "AWQ"), ("fp8", "FP8")],
)
def test_parts_become_one_weight(name: str, format: str, tmp_path: Path) -> None:
    published = LAYOUTS[name](np.random.default_rng(0), 64, 256)
    with closing(open_checkpoint(write_published(tmp_path, published))) as checkpoint:
        (tensor,) = checkpoint.tensors.values()
        assert isinstance(tensor, QuantizedTensor)
        assert (tensor.name, tensor.format, tensor.shape) == (f"{MODULE}.weight", format, (64, 256))
        assert checkpoint.num_bytes == sum(len(part.data) for part in tensor.parts.values())
        checkpoint.release(tensor)


def test_experts_in_mxfp4_keep_their_three_dimensions(tmp_path: Path) -> None:
    blocks, exponents, _ = mxfp4(np.random.default_rng(0), 6, 64)
    name = "model.layers.0.mlp.experts.down_proj"
    tensors = {f"{name}_blocks": blocks.reshape(2, 3, 2, 16), f"{name}_scales": exponents.reshape(2, 3, 2)}
    with closing(open_checkpoint(write(tmp_path, {"quant_method": "mxfp4"}, tensors))) as checkpoint:
        (tensor,) = checkpoint.tensors.values()
        assert (tensor.name, tensor.format, tensor.shape) == (name, "MXFP4", (2, 64, 3))  # on their side


def test_first_checkpoints_of_bitsandbytes_do_not_name_it(tmp_path: Path) -> None:
    published = LAYOUTS["nf4"](np.random.default_rng(0), 8, 64)
    with closing(open_checkpoint(write_published(tmp_path, published, quant_method=None))) as checkpoint:
        assert checkpoint.tensors[f"{MODULE}.weight"].format == "NF4"


def test_scales_of_activations_are_left_out(tmp_path: Path) -> None:
    published = LAYOUTS["fp8, one scale"](np.random.default_rng(0), 8, 64)
    published.tensors["activation_scale"] = np.array(0.5, dtype=np.float32)
    with closing(open_checkpoint(write_published(tmp_path, published))) as checkpoint:
        assert list(checkpoint.tensors) == [f"{MODULE}.weight"]


@pytest.mark.parametrize("method", ["quip", None, 3])
def test_an_unknown_method_is_refused_by_name(method: object, tmp_path: Path) -> None:
    write(tmp_path, {"quant_method": method}, {"x": np.zeros(4, np.float32)})
    with pytest.raises(UnsupportedFormat, match=f"method {method!r}; Kaiwa reads awq, bitsandbytes, fp8, gptq, mxfp4"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("gptq", {"bits": 3}, "gptq with bits=3; Kaiwa reads 4"),
        ("gptq", {"checkpoint_format": "marlin"}, "checkpoint_format='marlin'"),
        ("awq", {"version": "gemv"}, "version='gemv'"),
        ("awq", {"zero_point": False}, "zero_point=False"),
        ("fp8", {"fmt": "e5m2"}, "fmt='e5m2'"),
    ],
)
def test_unknown_variants_are_refused(name: str, settings: dict[str, Any], says: str, tmp_path: Path) -> None:
    published = LAYOUTS[name](np.random.default_rng(0), 64, 256)
    with pytest.raises(UnsupportedFormat, match=says) as caught:
        open_checkpoint(write_published(tmp_path, published, **settings))
    assert "GGUF" in caught.value.hint


def test_columns_out_of_order_are_refused(tmp_path: Path) -> None:
    published = gptq(np.random.default_rng(0), 64, 256)
    published.tensors["g_idx"][[0, 200]] = [1, 0]
    with pytest.raises(UnsupportedFormat, match=r"q_proj\.g_idx' gives columns to groups out of order \(desc_act\)"):
        open_checkpoint(write_published(tmp_path, published))


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("gptq", {"group_size": 64}, r"q_proj\.g_idx|q_proj\.qzeros' has the shape"),
        ("awq", {"group_size": 0}, "group_size is 0; it must be -1 or a multiple of 32"),
        ("awq", {"group_size": "128"}, "group_size is '128'"),
        ("fp8", {"weight_block_size": [128]}, r"weight_block_size is \[128\]"),
        ("fp8", {"weight_block_size": [64, 64]}, r"_scale_inv' has the shape \(1, 2\), and should have \(1, 4\)"),
    ],
)
def test_settings_that_do_not_fit_the_tensors(name: str, settings: dict[str, Any], says: str, tmp_path: Path) -> None:
    published = LAYOUTS[name](np.random.default_rng(0), 64, 256)
    with pytest.raises(UnusableFile, match=says):
        open_checkpoint(write_published(tmp_path, published, **settings))


@pytest.mark.parametrize(
    ("name", "missing"),
    [("gptq", "qzeros"), ("gptq", "scales"), ("awq", "qzeros"), ("nf4", "weight.absmax"), ("nf4", "weight.quant_map"),
     ("nf4", "weight"), ("nf4, nested", "weight.nested_absmax"), ("int8", "weight"), ("fp8", "weight")],
)  # fmt: skip
def test_a_missing_part_is_named(name: str, missing: str, tmp_path: Path) -> None:
    published = LAYOUTS[name](np.random.default_rng(0), 64, 256)
    tensors = {suffix: tensor for suffix, tensor in published.tensors.items() if suffix != missing}
    with pytest.raises(UnusableFile, match=rf"tensor '{MODULE}\.{missing}' is missing"):
        open_checkpoint(write_published(tmp_path, Published(published.settings, tensors, published.means)))


@pytest.mark.parametrize("name", ["int8", "nf4", "gptq", "awq", "fp8"])
def test_parts_without_what_joins_them_are_refused(name: str, tmp_path: Path) -> None:
    """Such as the packed weights of a module that its settings do not describe."""
    published = LAYOUTS[name](np.random.default_rng(0), 64, 256)
    largest = max(published.tensors, key=lambda suffix: published.tensors[suffix].nbytes)
    dtype = (published.dtypes or {}).get(largest)
    tensors = {f"{MODULE}.packed": published.tensors[largest]}
    write(tmp_path, dict(published.settings), tensors, {f"{MODULE}.packed": dtype} if dtype else None)
    with pytest.raises(UnsupportedFormat, match=rf"tensor '{MODULE}\.packed' has the number format"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(
    "state",
    [b"{", b"[]", b"{}", b'{"shape": [64, 0], "blocksize": 64}', b'{"shape": [64, 256], "blocksize": 0}', b"\xff",
     b'{"shape": [64, 255], "blocksize": 64}', b'{"shape": [64, 256], "blocksize": 32}',
     b'{"shape": 3, "blocksize": 4}', b'{"shape": [64, true], "blocksize": 64}'],
)  # fmt: skip
def test_an_impossible_description_of_a_weight(state: bytes, tmp_path: Path) -> None:
    published = LAYOUTS["nf4"](np.random.default_rng(0), 64, 256)
    published.tensors["weight.quant_state.bitsandbytes__nf4"] = np.frombuffer(state, dtype=np.uint8)
    with pytest.raises(UnusableFile, match=rf"tensor '{MODULE}\.weight"):
        open_checkpoint(write_published(tmp_path, published))


@pytest.mark.parametrize("settings", [[], "gptq", 4])
def test_settings_must_be_an_object(settings: object, tmp_path: Path) -> None:
    write(tmp_path, settings, {"x": np.zeros(4, np.float32)})
    with pytest.raises(UnusableFile, match=r"quantization_config is .*; it must be an object"):
        open_checkpoint(tmp_path)
