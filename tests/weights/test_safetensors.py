"""The safetensors reader: what the library writes comes back, and every broken rule is named."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from kaiwa.errors import KaiwaError, ModelNotFound, UnsupportedFormat, UnusableFile
from kaiwa.weights import safetensors as ours
from safetensors_folder import entry, index_of, safetensors_bytes, write_folder

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


def test_what_the_safetensors_library_writes_comes_back(tmp_path: Path) -> None:
    arrays = {
        "matrix": np.arange(12, dtype=np.float32).reshape(3, 4),
        "halves": np.arange(6, dtype=np.float16).reshape(2, 3),
        "scalar": np.array(7, np.float32),
        "nothing": np.zeros((0, 4), np.float32),
    }
    safetensors.numpy.save_file(arrays, tmp_path / SINGLE, metadata={"format": "pt"})
    files = ours.read(tmp_path)
    assert {name: (tensor.format, tensor.shape) for name, tensor in files.tensors.items()} == {
        "matrix": ("F32", (3, 4)), "halves": ("F16", (2, 3)), "scalar": ("F32", ()), "nothing": ("F32", (0, 4)),
    }  # fmt: skip
    for name, tensor in files.tensors.items():
        assert bytes(tensor.data) == arrays[name].tobytes()
        assert tensor.data.readonly
        files.release(tensor)
    files.close()


def test_a_sharded_model_comes_back_whole(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b"), 1):
        safetensors.numpy.save_file({name: np.full(8, number, np.float32)}, tmp_path / f"part-{number}.safetensors")
    (tmp_path / INDEX).write_bytes(index_of({"a": "part-1.safetensors", "b": "part-2.safetensors"}))
    files = ours.read(tmp_path)
    assert {name: np.frombuffer(tensor.data, np.float32).tolist() for name, tensor in files.tensors.items()} == {
        "a": [1.0] * 8, "b": [2.0] * 8,
    }  # fmt: skip
    files.release(files.tensors["b"])
    files.close()


def test_there_are_no_weights(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"there is no file .*model\.safetensors"):
        ours.read(tmp_path)


def test_a_file_cut_short_says_by_how_much(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"x": np.zeros((64, 32), np.float32)}, tmp_path / SINGLE)
    path = tmp_path / SINGLE
    path.write_bytes(path.read_bytes()[:-4096])
    with pytest.raises(UnusableFile) as caught:
        ours.read(tmp_path)
    assert str(caught.value) == (
        f"{path} is not a usable safetensors file: tensor 'x' ends 4,096 bytes past the end of the file"
    )


EIGHT = bytes(8)
BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is empty"),
    "short": (b"\x01\x00", "its header should have 1 bytes, and the file has 2"),
    "long header": (b"\xff" * 16, "its header should have 18,446,744,073,709,551,615 bytes"),
    "not UTF-8": (safetensors_bytes(b"{\xff}"), "its JSON is not UTF-8"),
    "not JSON": (safetensors_bytes(b"{nope}"), "its JSON is broken"),
    "a list": (safetensors_bytes([]), "its JSON is a list, and should be an object"),
    "deep": (safetensors_bytes(b'{"a":' + b"[" * 200_000), "nests too deep"),
    "long number": (safetensors_bytes(b'{"a":' + b"9" * 5000 + b"}"), "too many digits"),
    "twice": (safetensors_bytes(b'{"x":{},"x":{}}'), "the key 'x' is there twice"),
    "metadata": (safetensors_bytes({"__metadata__": {"a": 1}}), "its __metadata__ must be an object of texts"),
    "no object": (safetensors_bytes({"x": 3}), "tensor 'x' must have dtype, shape and data_offsets"),
    "key missing": (safetensors_bytes({"x": {"dtype": "F32", "shape": [2]}}), "tensor 'x' must have dtype"),
    "key too many": (safetensors_bytes({"x": {**entry([2], 0, 8), "more": 1}}, EIGHT), "and nothing else"),
    "unknown dtype": (safetensors_bytes({"x": entry([2], 0, 8, "F31")}, EIGHT), "the dtype 'F31'"),
    "dtype no text": (safetensors_bytes({"x": {**entry([2], 0, 8), "dtype": ["F32"]}}, EIGHT), "the dtype ['F32']"),
    "unsupported dtype": (safetensors_bytes({"x": entry([8], 0, 8, "F8_E4M3")}, EIGHT), "number format F8_E4M3"),
    "negative": (safetensors_bytes({"x": entry([-2], 0, 8)}, EIGHT), "the impossible shape [-2]"),
    "truth": (safetensors_bytes({"x": entry([True], 0, 4)}, bytes(4)), "the impossible shape [True]"),
    "fraction": (safetensors_bytes({"x": {**entry([2], 0, 8), "shape": [2.0]}}, EIGHT), "the impossible shape [2.0]"),
    "many dimensions": (safetensors_bytes({"x": entry([1] * 9, 0, 4)}, bytes(4)), "the impossible shape"),
    "backwards": (safetensors_bytes({"x": entry([2], 8, 0)}, EIGHT), "the impossible data_offsets [8, 0]"),
    "three offsets": (
        safetensors_bytes({"x": {**entry([2], 0, 8), "data_offsets": [0, 4, 8]}}, EIGHT),
        "the impossible data_offsets [0, 4, 8]",
    ),
    "size": (
        safetensors_bytes({"x": entry([3], 0, 8)}, EIGHT),
        "tensor 'x' of shape [3] in F32 needs 12 bytes, and has 8",
    ),
    "overlap": (
        safetensors_bytes({"x": entry([2], 0, 8), "y": entry([2], 4, 12)}, bytes(12)),
        "tensor 'y' begins 4 bytes inside the one before",
    ),
    "gap": (safetensors_bytes({"x": entry([2], 4, 12)}, bytes(12)), "tensor 'x' begins 4 bytes too late"),
    "rest": (safetensors_bytes({"x": entry([2], 0, 8)}, bytes(12)), "4 bytes follow after the last tensor"),
    "beyond": (
        safetensors_bytes({"x": entry([2**40], 0, 2**42)}, EIGHT),
        "tensor 'x' ends 4,398,046,511,096 bytes past the end of the file",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_every_broken_rule_is_named(tmp_path: Path, name: str) -> None:
    content, expected = BROKEN[name]
    (tmp_path / SINGLE).write_bytes(content)
    with pytest.raises(KaiwaError) as caught:
        ours.read(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / SINGLE} is not a usable safetensors file: ")
    assert expected in str(caught.value)
    assert isinstance(caught.value, UnsupportedFormat) == ("dtype" in name)


@pytest.mark.parametrize(
    "name", ["../a.safetensors", "/a.safetensors", "b/a.safetensors", "b\\a.safetensors", "c:a.safetensors", "a.bin", 3]
)
def test_an_index_cannot_lead_out_of_its_folder(tmp_path: Path, name: object) -> None:
    write_folder(tmp_path, {INDEX: index_of({"x": name})})
    with pytest.raises(UnusableFile, match="not a plain name"):
        ours.read(tmp_path)


X = safetensors_bytes({"x": entry([2], 0, 8)}, EIGHT)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({INDEX: b"{}"}, "its weight_map"),
        ({INDEX: index_of({})}, "its weight_map"),
        ({INDEX: index_of(["x"])}, "its weight_map"),
        ({INDEX: b"[]"}, "its JSON is a list"),
        ({INDEX: index_of({"x": "a.safetensors"})}, "it needs the file a.safetensors, which is missing"),
        ({INDEX: index_of({"x": "a" * 5000 + ".safetensors"})}, "which is missing"),
        ({INDEX: index_of({"y": "a.safetensors"}), "a.safetensors": X}, "the index promises tensor 'y'"),
        (
            {INDEX: index_of({"x": "b.safetensors", "y": "a.safetensors"}), "a.safetensors": X, "b.safetensors": X},
            "the index promises tensor 'y'",
        ),
    ],
)
def test_an_index_that_is_not_kept(tmp_path: Path, files: dict[str, bytes], expected: str) -> None:
    write_folder(tmp_path, files)
    with pytest.raises(UnusableFile) as caught:
        ours.read(tmp_path)
    assert expected in str(caught.value)


def test_the_same_tensor_in_two_shards(tmp_path: Path) -> None:
    both = safetensors_bytes({"x": entry([1], 0, 4), "y": entry([1], 4, 8)}, EIGHT)
    index = index_of({"x": "a.safetensors", "y": "b.safetensors"})
    write_folder(tmp_path, {INDEX: index, "a.safetensors": both, "b.safetensors": both})
    with pytest.raises(UnusableFile, match=r"b\.safetensors .*is in an earlier part, too"):
        ours.read(tmp_path)


def test_a_header_of_many_keys_is_read_in_no_time(tmp_path: Path) -> None:
    pairs = ",".join(f'"{number}":{json.dumps(entry([0], 0, 0))}' for number in range(20_000))
    (tmp_path / SINGLE).write_bytes(safetensors_bytes(f'{{{pairs},"0":{{}}}}'.encode()))
    with pytest.raises(UnusableFile, match="the key '0' is there twice"):
        ours.read(tmp_path)
