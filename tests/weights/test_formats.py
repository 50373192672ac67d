"""Number formats, against the tables of the gguf package and of the safetensors library."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import safetensors.numpy

from kaiwa.errors import UnsupportedFormat, UnusableFile
from kaiwa.weights.formats import (
    FORMATS,
    GGML_FORMATS,
    SAFETENSORS_FORMATS,
    check_shape,
    check_supported,
    supported_names,
)

# The package counts Q8_1 as 40 bytes, as it was in 2023; its layout in ggml-common.h is two halves and 32 bytes.
SIZES = {**gguf.GGML_QUANT_SIZES, gguf.GGMLQuantizationType.Q8_1: (32, 36)}


@pytest.mark.parametrize("type", list(gguf.GGMLQuantizationType), ids=lambda type: type.name)
def test_every_ggml_type_has_its_name_and_size(type: gguf.GGMLQuantizationType) -> None:
    format = GGML_FORMATS[type.value]
    assert (format.name, format.block_size, format.block_bytes) == (type.name, *SIZES[type])


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("float64", "F64"), ("float32", "F32"), ("float16", "F16"), ("int64", "I64"), ("uint16", "U16"), ("bool", "BOOL")],
)
def test_safetensors_dtypes_have_the_names_that_the_library_writes(dtype: str, name: str) -> None:
    written = safetensors.numpy.save({"x": np.zeros((2, 3), dtype)})
    assert f'"dtype":"{name}"'.encode() in written
    assert SAFETENSORS_FORMATS[name].num_bytes((2, 3)) == np.zeros((2, 3), dtype).nbytes


def test_what_the_engine_computes_with() -> None:
    expected = {"F32", "F16", "BF16", "Q8_0", "Q8_1", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL", "MXFP4"}
    expected |= {"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"}
    assert set(supported_names()) == expected


def test_one_matrix_worked_out_by_hand() -> None:
    # 3 rows of 64 numbers: 2 blocks a row, each a scale and a minimum in 2 bytes and 32 numbers in half a byte
    assert FORMATS["Q4_1"].num_bytes((3, 64)) == 3 * 2 * (2 + 2 + 16)


def test_an_unsupported_format_is_refused_by_name_and_says_which_would_do() -> None:
    with pytest.raises(UnsupportedFormat, match=r"m\.gguf .*tensor 'blk.0.ffn_up.weight'.*IQ2_XS") as caught:
        check_supported(FORMATS["IQ2_XS"], tensor="blk.0.ffn_up.weight", path="m.gguf", kind="GGUF")
    assert "Q4_K" in caught.value.hint


def test_rows_must_be_whole_blocks() -> None:
    check_shape(FORMATS["Q6_K"], (3, 512), tensor="x", path="m.gguf", kind="GGUF")
    with pytest.raises(UnusableFile, match=r"tensor 'x' has rows of 576 numbers, and Q6_K .* blocks of 256"):
        check_shape(FORMATS["Q6_K"], (3, 576), tensor="x", path="m.gguf", kind="GGUF")
