"""Thousands of damaged files: each one loads, or is refused by an error of ours, at once.

Real headers are damaged as disks, networks and ill will do it: bytes changed, sizes made huge, pieces cut out, doubled
or moved. The numbers are seeds, so that a case that fails can be run again.
"""

from __future__ import annotations

import json
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import gguf as reference
import pytest

from gguf_bytes import LLAMA, Entry, gguf_bytes, write_llama
from kaiwa.errors import KaiwaError
from kaiwa.weights.open import open_checkpoint
from safetensors_folder import CONFIG, entry, index_of, safetensors_bytes, write_folder

MAX_CASE_S = 3.0
CHUNK = 100
EXTREMES = [
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0xFFFF,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 32,
    2**64 - 1,
]
TOKENS = [b"null", b"true", b"-1", b"1e999", b'""', b"[]", b"{}", b"9" * 40, b"[[[[", b"\xff", b'"F32"', b'"F8_E5M2"']


def damage(content: bytes, chance: random.Random) -> bytes:
    """`content` with one to four things wrong."""
    result = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(result) + 1)
        length = chance.choice((1, 2, 4, 8, 40))
        match chance.randrange(8):
            case 0:
                result[at : at + length] = chance.randbytes(length)
            case 1:
                result[at : at + 4] = (chance.choice(EXTREMES) & 0xFFFFFFFF).to_bytes(4, "little")
            case 2:
                result[at : at + 8] = chance.choice(EXTREMES).to_bytes(8, "little")
            case 3:
                del result[at : at + length]
            case 4:
                result[at:at] = result[at : at + length]
            case 5:
                result[at : at + 1] = chance.choice(TOKENS)
            case 6:
                other = chance.randrange(len(result) + 1)
                result[at : at + length] = result[other : other + length]
            case 7 if chance.random() < 0.3:
                del result[at:]
    return bytes(result)


ODD_VALUES = [
    None,
    True,
    0,
    -1,
    0.5,
    1e300,
    "",
    "x",
    [],
    [0],
    ["x"],
    [True, False],
    {},
    {"x": 0},
    [[]],
    2**31,
    2**64,
    10**30,
]


def swap(value: Any, chance: random.Random) -> Any:
    """`value` as before, but for one place in it, which has something else, or is gone."""
    if not isinstance(value, dict | list) or not value or chance.random() < 0.1:
        return chance.choice(ODD_VALUES)
    result = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    place = chance.choice(list(result))
    if chance.random() < 0.1:
        del result[place]
    else:
        result[place] = swap(result[place], chance)
    return result if isinstance(value, dict) else list(result.values())


def check(path: Path) -> bool:
    """Open what is there; whether it loaded."""
    started = time.monotonic()
    loaded = False
    with suppress(KaiwaError):
        checkpoint = open_checkpoint(path)
        loaded = True
        for tensor in checkpoint.tensors.values():
            assert len(bytes(tensor.data[-1:])) <= 1
            checkpoint.release(tensor)
        checkpoint.close()
    assert time.monotonic() - started < MAX_CASE_S
    return loaded


def write_with_room(path: Path, header: bytes, num_bytes: int) -> None:
    """`header`, then nothing up to `num_bytes`, which takes no room on disk."""
    with path.open("wb") as file:
        file.write(header)
        file.truncate(max(num_bytes, len(header)))


@pytest.fixture(scope="module")
def real_header(model_path: Path) -> tuple[bytes, int]:
    """The default model's header with most of its vocabulary taken out, and the length that its file would have."""
    real = reference.GGUFReader(model_path)
    metadata = {
        key: field.contents()[:200] if len(field.data) > 200 else field.contents()
        for key, field in real.fields.items()
        if not key.startswith("GGUF.")
    }
    tensors = [
        Entry(
            tensor.name,
            tuple(reversed(tensor.shape.tolist())),
            format=tensor.tensor_type.value,
            data=b"",
            offset=int(tensor.data_offset - real.data_offset),
        )
        for tensor in real.tensors
    ]
    return gguf_bytes(metadata, tensors), model_path.stat().st_size


@pytest.mark.parametrize("first_seed", range(0, 1000, CHUNK))
def test_damaged_small_gguf_files(tmp_path: Path, first_seed: int) -> None:
    path = write_llama(tmp_path / "model.gguf")
    whole = path.read_bytes()
    for seed in range(first_seed, first_seed + CHUNK):
        path.write_bytes(damage(whole, random.Random(seed)))
        check(path)


@pytest.mark.parametrize("first_seed", range(0, 700, CHUNK))
def test_the_damaged_header_of_the_real_model(tmp_path: Path, real_header: tuple[bytes, int], first_seed: int) -> None:
    header, num_bytes = real_header
    path = tmp_path / "model.gguf"
    for seed in range(first_seed, first_seed + CHUNK):
        write_with_room(path, damage(header, random.Random(seed)), num_bytes)
        check(path)


def test_the_header_of_the_real_model_loads_undamaged(tmp_path: Path, real_header: tuple[bytes, int]) -> None:
    header, num_bytes = real_header
    write_with_room(tmp_path / "model.gguf", header, num_bytes)
    assert check(tmp_path / "model.gguf")


HEADER = {
    "__metadata__": {"format": "pt"},
    "model.embed_tokens.weight": entry([4, 8], 0, 128),
    "model.norm.weight": entry([8], 128, 144, "BF16"),
    "lm_head.weight": entry([4, 8], 144, 208, "F16"),
}


@pytest.mark.parametrize("key", LLAMA)
def test_keys_of_the_wrong_type(tmp_path: Path, key: str) -> None:
    values = [value for value in ODD_VALUES if can_be_in_gguf(value)]
    for value in values:
        check(write_llama(tmp_path / "model.gguf", {key: value}))


def can_be_in_gguf(value: object) -> bool:
    return value is None or not (value in (-1, [], [[]], 2**64, 10**30, 1e300) or isinstance(value, dict))


@pytest.mark.parametrize("first_seed", range(0, 500, CHUNK))
def test_safetensors_headers_with_something_swapped(tmp_path: Path, first_seed: int) -> None:
    folder = write_folder(tmp_path, {})
    for seed in range(first_seed, first_seed + CHUNK):
        header = swap(HEADER, random.Random(seed))
        (folder / "model.safetensors").write_bytes(safetensors_bytes(header, bytes(208)))
        check(folder)


@pytest.mark.parametrize("first_seed", range(0, 1000, CHUNK))
def test_damaged_safetensors_files(tmp_path: Path, first_seed: int) -> None:
    whole = safetensors_bytes(HEADER, bytes(208))
    folder = write_folder(tmp_path, {"model.safetensors": whole})
    assert check(folder)
    for seed in range(first_seed, first_seed + CHUNK):
        (folder / "model.safetensors").write_bytes(damage(whole, random.Random(seed)))
        check(folder)


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "model.safetensors.index.json"])
def test_damaged_json_beside_the_weights(tmp_path: Path, name: str) -> None:
    bands = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    rope = {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 64, **bands}
    files = {
        "a.safetensors": safetensors_bytes({"lm_head.weight": entry([4, 8], 0, 128)}, bytes(128)),
        "model.safetensors.index.json": index_of({"lm_head.weight": "a.safetensors"}),
        "generation_config.json": json.dumps({"temperature": 0.6, "eos_token_id": [1, 2]}).encode(),
    }
    folder = write_folder(tmp_path, files, {**CONFIG, "rope_parameters": rope, "sliding_window": 7})
    whole = (folder / name).read_bytes()
    assert check(folder)
    for seed in range(2 * CHUNK):
        (folder / name).write_bytes(damage(whole, random.Random(seed)))
        check(folder)
    for seed in range(4 * CHUNK):
        (folder / name).write_text(json.dumps(swap(json.loads(whole), random.Random(seed))))
        check(folder)
