"""The GGUF reader: what the gguf package writes comes back, and every broken rule is named."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any

import gguf as reference
import numpy as np
import pytest

from gguf_bytes import ARRAY, STRING, U32, Entry, gguf_bytes, text, u32, u64, write_llama
from kaiwa.errors import KaiwaError, ModelNotFound, UnsupportedFormat, UnusableFile
from kaiwa.weights import gguf


def refusal(path: Path) -> KaiwaError:
    with pytest.raises(KaiwaError) as caught:
        gguf.read(path).close()
    assert str(caught.value).startswith(f"{path} is not a usable GGUF file: ")
    return caught.value


def refusal_of(tmp_path: Path, content: bytes) -> KaiwaError:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    return refusal(path)


def test_what_the_gguf_package_writes_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    writer = reference.GGUFWriter(path, "llama")
    values: dict[str, Any] = {
        "uint8": 255, "int8": -128, "uint16": 65535, "int16": -32768, "uint32": 2**32 - 1, "int32": -(2**31),
        "uint64": 2**64 - 1, "int64": -(2**63), "float32": 0.5, "float64": 0.1, "bool": True, "string": "会話 🙂",
    }  # fmt: skip
    for kind, value in values.items():
        getattr(writer, f"add_{kind}")(f"test.{kind}", value)
    writer.add_array("test.texts", ["a", "", "é"])
    writer.add_array("test.numbers", [1, -2, 3])
    writer.add_array("test.floats", [0.5, 0.25])
    writer.add_array("test.truths", [True, False])
    writer.add_array("test.nested", [[1, 2], [3]])
    matrix = np.arange(96, dtype=np.float32).reshape(3, 32)
    writer.add_tensor("matrix", matrix)
    writer.add_tensor("halves", matrix.astype(np.float16))
    blocks = reference.quants.quantize(matrix, reference.GGMLQuantizationType.Q8_0)
    writer.add_tensor("blocks", blocks, raw_dtype=reference.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    file = gguf.read(path)
    found = file.metadata
    assert found["general.architecture"] == "llama"
    assert {kind: found[f"test.{kind}"] for kind in values} == values
    assert found["test.texts"] == ["a", "", "é"]
    assert found["test.numbers"].tolist() == [1, -2, 3]
    assert found["test.floats"].tolist() == [0.5, 0.25]
    assert found["test.truths"] == [True, False]
    assert [list(row) for row in found["test.nested"]] == [[1, 2], [3]]
    assert [(tensor.format, tensor.shape) for tensor in file.tensors.values()] == [
        ("F32", (3, 32)), ("F16", (3, 32)), ("Q8_0", (3, 32)),
    ]  # fmt: skip
    assert bytes(file.tensors["matrix"].data) == matrix.tobytes()
    assert bytes(file.tensors["blocks"].data) == blocks.tobytes()
    assert file.tensors["matrix"].data.readonly
    file.close()


def test_the_real_model_opens_quickly_and_agrees_with_the_gguf_package(model_path: Path) -> None:
    times = []
    for _ in range(3):
        started = time.perf_counter()
        gguf.read(model_path).close()
        times.append(time.perf_counter() - started)
    assert min(times) < 0.1
    file, other = gguf.read(model_path), reference.GGUFReader(model_path)
    assert len(file.tensors) == len(other.tensors) == 272
    for expected in other.tensors:
        tensor = file.tensors[expected.name]
        assert tensor.format == expected.tensor_type.name
        assert tensor.shape == tuple(reversed(expected.shape.tolist()))
        assert np.array_equal(np.frombuffer(tensor.data, np.uint8), expected.data.reshape(-1).view(np.uint8))
        file.release(tensor)
    for key in ("tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.token_type"):
        assert list(file.metadata[key]) == other.fields[key].contents()
    del expected, tensor, other
    file.close()


def test_released_pages_can_be_read_again(model_path: Path) -> None:
    file = gguf.read(model_path)
    tensor = file.tensors["token_embd.weight"]
    before = bytes(tensor.data[:100_000])
    file.release(tensor)
    assert bytes(tensor.data[:100_000]) == before
    file.close()


def test_closing_twice_is_fine_and_a_view_in_use_stays_readable(tmp_path: Path) -> None:
    file = gguf.read(write_llama(tmp_path / "model.gguf"))
    used = np.frombuffer(file.tensors["output_norm.weight"].data, np.float32)
    file.close()
    file.close()
    assert used.tolist() == [0.0] * 8
    with pytest.raises(ValueError, match="released"):
        file.tensors["token_embd.weight"].data.tobytes()


def test_version_2_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_bytes({"a": 1}, version=u32(2)))
    file = gguf.read(path)
    assert file.metadata == {"a": 1}
    file.close()


def test_a_file_cut_short_says_by_how_much(tmp_path: Path) -> None:
    whole = gguf_bytes({}, [Entry("a", (8,)), Entry("blk.3.ffn_up.weight", (64, 32))])
    error = refusal_of(tmp_path, whole[:-4096])
    assert str(error).endswith("tensor 'blk.3.ffn_up.weight' ends 4,096 bytes past the end of the file")
    assert "download" in error.hint


def test_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="there is no file"):
        gguf.read(tmp_path / "model.gguf")


@pytest.mark.parametrize(
    ("version", "expected"),
    [(u32(1), "version 1"), (u32(4), "version 4"), (u32(0), "version 0"), (struct.pack(">I", 3), "big-endian")],
)
def test_versions_and_byte_orders_that_are_not_read(tmp_path: Path, version: bytes, expected: str) -> None:
    error = refusal_of(tmp_path, gguf_bytes({"a": 1}, version=version))
    assert isinstance(error, UnsupportedFormat)
    assert expected in str(error)


def test_the_other_byte_order_in_the_magic(tmp_path: Path) -> None:
    assert "big-endian" in str(refusal_of(tmp_path, gguf_bytes({"a": 1}, magic=b"FUGG")))


FOUR_NESTED = u32(ARRAY) + (u32(ARRAY) + u64(1)) * 4 + u32(U32) + u64(0)
HUGE = 2**63

BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is empty"),
    "only magic": (b"GGUF", "ends in the middle of the version"),
    "other magic": (b"NOPE" + bytes(60), "begins with b'NOPE' and not with b'GGUF'"),
    "too many tensors": (gguf_bytes(num_tensors=HUGE), "promises 9,223,372,036,854,775,808 tensors"),
    "too many keys": (gguf_bytes(num_keys=HUGE), "promises 9,223,372,036,854,775,808 keys"),
    "key twice": (gguf_bytes([("a", 1), ("a", 2)]), "key 'a' is there twice"),
    "key not UTF-8": (gguf_bytes([(b"\xff", 1)]), "the name of key 0 holds text that is not UTF-8"),
    "text not UTF-8": (gguf_bytes([("a", u32(STRING) + text(b"ok\xff"))]), "key 'a' holds text that is not UTF-8"),
    "item not UTF-8": (
        gguf_bytes([("a", u32(ARRAY) + u32(STRING) + u64(2) + text("ok") + text(b"\xc3"))]),
        "item 1 of key 'a' holds text that is not UTF-8",
    ),
    "type of value": (gguf_bytes([("a", u32(13) + u32(0))]), "key 'a' has type 13"),
    "truth": (gguf_bytes([("a", u32(7) + b"\x02")]), "key 'a' should be true or false"),
    "truth in array": (gguf_bytes([("a", u32(ARRAY) + u32(7) + u64(1) + b"\x02")]), "should be true or false"),
    "long text": (gguf_bytes([("a", u32(STRING) + u64(HUGE))]), "ends in the middle of key 'a'"),
    "long array": (gguf_bytes([("a", u32(ARRAY) + u32(U32) + u64(HUGE))]), "items of key 'a'"),
    "long array of numbers": (
        gguf_bytes([("a", u32(ARRAY) + u32(10) + u64(9))]),
        "promises 9 items of key 'a', and has only",
    ),
    "type of items": (gguf_bytes([("a", u32(ARRAY) + u32(13) + u64(0))]), "key 'a' has type 13"),
    "long text in array": (
        gguf_bytes([("a", u32(ARRAY) + u32(STRING) + u64(1) + u64(HUGE))]),
        "ends in the middle of key 'a'",
    ),
    "deep array": (gguf_bytes([("a", FOUR_NESTED)]), "key 'a' nests arrays more than 4 deep"),
    "alignment 0": (gguf_bytes({"general.alignment": 0}), "general.alignment is 0"),
    "alignment 48": (gguf_bytes({"general.alignment": 48}), "general.alignment is 48"),
    "alignment text": (gguf_bytes({"general.alignment": "32"}), "general.alignment is '32'"),
    "alignment true": (gguf_bytes({"general.alignment": True}), "general.alignment is True"),
    "tensor twice": (gguf_bytes({}, [Entry("x", (8,)), Entry("x", (8,))]), "tensor 'x' is there twice"),
    "tensor not UTF-8": (gguf_bytes({}, [Entry(b"\xff", (8,))]), "the name of tensor 0 holds text that is not UTF-8"),
    "no dimensions": (gguf_bytes({}, [Entry("x", (), data=b"")]), "tensor 'x' has 0 dimensions"),
    "five dimensions": (gguf_bytes({}, [Entry("x", (1, 1, 1, 1, 1))]), "tensor 'x' has 5 dimensions"),
    "zero dimension": (gguf_bytes({}, [Entry("x", (4, 0), data=bytes(32))]), r"tensor 'x' has the shape (4, 0)"),
    "overflow": (
        gguf_bytes({}, [Entry("x", (2**32, 2**32, 2**32), data=bytes(32))]),
        "tensor 'x' ends 316,912,650,057,057,350,374,175,801,312 bytes past the end",
    ),
    "unknown format": (gguf_bytes({}, [Entry("x", (8,), format=31)]), "tensor 'x' has number format 31"),
    "unsupported format": (gguf_bytes({}, [Entry("x", (256,), format=16)]), "tensor 'x' has the number format IQ2_XXS"),
    "part of a block": (gguf_bytes({}, [Entry("x", (2, 33), format=8)]), "tensor 'x' has rows of 33 numbers"),
    "unaligned": (gguf_bytes({}, [Entry("x", (8,), offset=8)]), "lies at offset 8, which is not a multiple of 32"),
    "overlap": (
        gguf_bytes({}, [Entry("x", (16,)), Entry("y", (16,), offset=32)]),
        "tensors 'x' and 'y' overlap by 32 bytes",
    ),
    "offset beyond": (gguf_bytes({}, [Entry("x", (8,), offset=HUGE)]), "tensor 'x' ends 9,223,372,036,854,775,808"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (u32(STRING) + u64(1 << 28), "its header is longer than 134,217,728 bytes"),
        (u32(ARRAY) + u32(0) + u64(1 << 23), "key 'a' has 8,388,608 items; at most 4,194,304 make sense"),
    ],
)
def test_a_large_file_cannot_make_a_large_header(tmp_path: Path, value: bytes, expected: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_bytes([("a", value)]))
    with path.open("r+b") as file:
        file.truncate(1 << 30)
    assert expected in str(refusal(path))


@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_rule_is_named(tmp_path: Path, name: str) -> None:
    content, expected = BROKEN[name]
    assert expected in str(refusal_of(tmp_path, content))


def test_every_cut_is_an_error(tmp_path: Path) -> None:
    whole = write_llama(tmp_path / "whole.gguf").read_bytes()
    path = tmp_path / "model.gguf"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        refusal(path)


def test_an_alignment_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    ones = struct.pack("<2f", 1, 2)
    content = gguf_bytes({"general.alignment": 256}, [Entry("x", (2,), data=ones), Entry("y", (2,))], alignment=256)
    path.write_bytes(content)
    file = gguf.read(path)
    assert bytes(file.tensors["x"].data) == ones
    file.close()


# Split files


def write_parts(folder: Path, *, changes: dict[int, dict[str, Any]] | None = None, count: int = 3) -> list[Path]:
    """One tensor in each part; `changes` to single parts' keys."""
    paths = []
    for index in range(count):
        metadata: dict[str, Any] = {"split.no": index, "split.count": count, "split.tensors.count": count}
        if index == 0:
            metadata["general.architecture"] = "llama"
        metadata |= (changes or {}).get(index, {})
        path = folder / f"m-{index + 1:05}-of-{count:05}.gguf"
        path.write_bytes(gguf_bytes(metadata, [Entry(f"blk.{index}.x", (8,), data=bytes([index]) * 32)]))
        paths.append(path)
    return paths


@pytest.mark.parametrize("opened", [0, 1, 2])
def test_a_split_file_opens_from_any_of_its_parts(tmp_path: Path, opened: int) -> None:
    file = gguf.read(write_parts(tmp_path)[opened])
    assert file.metadata["general.architecture"] == "llama"
    assert {name: bytes(tensor.data) for name, tensor in file.tensors.items()} == {
        f"blk.{index}.x": bytes([index]) * 32 for index in range(3)
    }
    file.release(file.tensors["blk.2.x"])
    file.close()


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    paths = write_parts(tmp_path)
    paths[1].unlink()
    error = refusal(paths[0])
    assert "part 2 is missing: m-00002-of-00003.gguf" in str(error)


@pytest.mark.parametrize(
    ("part", "changes", "expected"),
    [
        (1, {"split.no": 2}, "its name says part 2, and split.no is 2"),
        (1, {"split.count": 4}, "it is one of 4 parts, and its name says one of 3"),
        (0, {"split.tensors.count": 4}, "should hold 4 tensors, and hold 3"),
    ],
)
def test_parts_must_agree(tmp_path: Path, part: int, changes: dict[str, Any], expected: str) -> None:
    paths = write_parts(tmp_path, changes={part: changes})
    with pytest.raises(UnusableFile, match=expected):
        gguf.read(paths[0])


def test_the_same_tensor_in_two_parts(tmp_path: Path) -> None:
    paths = write_parts(tmp_path)
    metadata = {"split.no": 2, "split.count": 3, "split.tensors.count": 3}
    paths[2].write_bytes(gguf_bytes(metadata, [Entry("blk.0.x", (8,))]))
    with pytest.raises(UnusableFile, match=r"m-00003-of-00003\.gguf .*tensor 'blk.0.x' is in an earlier part"):
        gguf.read(paths[0])


def test_a_part_that_was_renamed(tmp_path: Path) -> None:
    renamed = write_parts(tmp_path)[0].rename(tmp_path / "model.gguf")
    assert "one of 3 parts" in str(refusal(renamed))


def test_a_part_number_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "m-00004-of-00003.gguf"
    path.write_bytes(gguf_bytes({}))
    assert "part 4 of 3" in str(refusal(path))
