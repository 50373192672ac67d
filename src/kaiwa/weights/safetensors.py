"""safetensors files: a strict reader of one file, or of several that an index joins.

The format: https://huggingface.co/docs/safetensors. Eight bytes give the length of a JSON header; the tensors' bytes
follow it without gaps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Set
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaiwa.errors import ModelNotFound, UnsupportedFormat, UnusableFile
from kaiwa.weights import file_kinds
from kaiwa.weights.checkpoint import Tensor
from kaiwa.weights.formats import SAFETENSORS_FORMATS, check_shape, check_supported
from kaiwa.weights.mapped_file import MappedFile

KIND = "safetensors"
MAX_HEADER_BYTES = 100_000_000
"""The bound that the format's own library has."""
MAX_JSON_BYTES = 100_000_000
MAX_DIMENSIONS = 8

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"

_LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class SafetensorsFiles:
    """An opened model, of one file or several."""

    tensors: Mapping[str, Tensor]
    paths: tuple[Path, ...]
    release: Callable[[Tensor], None]
    check: Callable[[], None]
    close: Callable[[], None]


Ranges = dict[str, tuple[MappedFile, int, int]]


def read(folder: Path, *, also: Set[str] = frozenset()) -> SafetensorsFiles:
    """Open the weights in a folder: `model.safetensors`, or what `model.safetensors.index.json` lists.

    `also` names formats that Kaiwa cannot compute with and that the caller makes something of.

    Raises `ModelNotFound` where neither is there, `UnusableFile` where a file breaks a rule of the format, and
    `UnsupportedFormat` for number formats that Kaiwa does not read.
    """
    with ExitStack() as opened:
        tensors: dict[str, Tensor] = {}
        ranges: Ranges = {}
        shards = _shards(folder)
        for path, expected in shards.items():
            file = MappedFile(path, KIND)
            opened.callback(file.close)
            found = _read_file(file, ranges, also)
            _check_shard(path, expected, found, tensors)
            tensors |= found

        def release(tensor: Tensor) -> None:
            file, begin, end = ranges[tensor.name]
            file.release(begin, end)

        def check() -> None:
            for file, _, _ in ranges.values():
                file.check()

        return SafetensorsFiles(tensors, tuple(shards), release, check, opened.pop_all().close)


def read_json(path: Path, kind: str) -> dict[str, Any]:
    """The JSON object in a file. Raises `UnusableFile` where it is none."""
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise UnusableFile(
                path, kind, f"it has {path.stat().st_size:,} bytes; at most {MAX_JSON_BYTES:,} make sense"
            )
        return _parse_object(path.read_bytes(), path, kind)
    except FileNotFoundError as error:
        raise ModelNotFound(f"there is no file {path}") from error
    except OSError as error:
        raise UnusableFile(path, kind, f"it cannot be read: {error.strerror}") from error


def _shards(folder: Path) -> dict[Path, set[str] | None]:
    """The files to open, each with the names that the index expects in it (None where there is no index)."""
    index = folder / INDEX
    if not index.exists():
        return {folder / SINGLE: None}
    weight_map = read_json(index, "safetensors index").get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise UnusableFile(
            index, "safetensors index", "its weight_map, from tensor names to files, is missing or empty"
        )
    shards: dict[Path, set[str] | None] = {}
    for name, file_name in weight_map.items():
        if not isinstance(file_name, str) or not _is_plain_name(file_name):
            raise UnusableFile(
                index,
                "safetensors index",
                f"tensor {name!r} is in the file {file_name!r}, which is not a plain name of a .safetensors file",
            )
        names = shards.setdefault(folder / file_name, set())
        assert names is not None
        names.add(name)
    for path in shards:
        if not file_kinds.exists(path):
            raise UnusableFile(
                index,
                "safetensors index",
                f"it needs the file {path.name}, which is missing",
                hint="download all parts",
            )
    return shards


def _is_plain_name(name: str) -> bool:
    """Whether it names a file in the same folder, and cannot lead out of it."""
    return name.endswith(".safetensors") and not any(character in name for character in "/\\:\0")


def _check_shard(
    path: Path, expected: set[str] | None, found: Mapping[str, Tensor], before: Mapping[str, Tensor]
) -> None:
    if expected is None:
        return
    if missing := expected - found.keys():
        raise UnusableFile(path, KIND, f"the index promises tensor {min(missing)!r} in it, which is not there")
    if twice := found.keys() & before.keys():
        raise UnusableFile(path, KIND, f"tensor {min(twice)!r} is in an earlier part, too")


def _read_file(file: MappedFile, ranges: Ranges, also: Set[str]) -> dict[str, Tensor]:
    header, start = _read_header(file)
    tensors: dict[str, Tensor] = {}
    spans: list[tuple[int, int, str]] = []
    for name, info in header.items():
        if name == "__metadata__":
            _check_metadata(info, file)
            continue
        format, shape, begin, end = _read_info(name, info, file, also)
        if start + end > file.num_bytes:
            past = start + end - file.num_bytes
            raise UnusableFile(
                file.path,
                KIND,
                f"tensor {name!r} ends {past:,} bytes past the end of the file",
                hint="the file was cut short: download or copy it again",
            )
        spans.append((begin, end, name))
        ranges[name] = (file, start + begin, start + end)
        tensors[name] = Tensor(name, format, shape, file.view(start + begin, start + end))
    _check_spans(spans, start, file)
    file.read_in_order()
    return tensors


def _read_header(file: MappedFile) -> tuple[dict[str, Any], int]:
    """The header, and where the tensors' bytes start."""
    length = int.from_bytes(file.data[:_LENGTH_BYTES], "little")
    start = _LENGTH_BYTES + length
    if file.num_bytes < _LENGTH_BYTES or length > MAX_HEADER_BYTES or start > file.num_bytes:
        what, hint = file_kinds.describe(file.data[:256]) or (
            f"its header should have {length:,} bytes, and the file has {file.num_bytes:,}",
            "download or copy it again",
        )
        raise UnusableFile(file.path, KIND, what, hint=hint)
    return _parse_object(file.data[_LENGTH_BYTES:start], file.path, KIND), start


def _parse_object(text: bytes, path: Path, kind: str) -> dict[str, Any]:
    def without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                raise UnusableFile(path, kind, f"the key {key!r} is there twice")
            result[key] = value
        return result

    try:
        value = json.loads(text.decode(), object_pairs_hook=without_twins)
    except UnusableFile:
        raise
    except UnicodeDecodeError as error:
        raise UnusableFile(path, kind, "its JSON is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise UnusableFile(path, kind, f"its JSON is broken: {error}") from error
    except (RecursionError, ValueError) as error:
        raise UnusableFile(path, kind, "its JSON nests too deep, or holds a number with too many digits") from error
    if not isinstance(value, dict):
        raise UnusableFile(path, kind, f"its JSON is a {type(value).__name__}, and should be an object")
    return value


def _check_metadata(metadata: Any, file: MappedFile) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise UnusableFile(file.path, KIND, "its __metadata__ must be an object of texts")


def _read_info(name: str, info: Any, file: MappedFile, also: Set[str]) -> tuple[str, tuple[int, ...], int, int]:
    """A tensor's format, shape, begin and end (in bytes from where the tensors' bytes start)."""
    if not isinstance(info, dict) or info.keys() != {"dtype", "shape", "data_offsets"}:
        raise UnusableFile(
            file.path, KIND, f"tensor {name!r} must have dtype, shape and data_offsets, and nothing else"
        )
    dtype, shape, offsets = info["dtype"], info["shape"], info["data_offsets"]
    if not isinstance(dtype, str) or dtype not in SAFETENSORS_FORMATS:
        raise UnsupportedFormat(file.path, KIND, f"tensor {name!r} has the dtype {dtype!r}, which Kaiwa does not know")
    if not _are_sizes(shape) or len(shape) > MAX_DIMENSIONS:
        raise UnusableFile(file.path, KIND, f"tensor {name!r} has the impossible shape {shape!r}")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise UnusableFile(file.path, KIND, f"tensor {name!r} has the impossible data_offsets {offsets!r}")
    format = SAFETENSORS_FORMATS[dtype]
    check_shape(format, shape, tensor=name, path=file.path, kind=KIND)
    if format.name not in also:
        check_supported(format, tensor=name, path=file.path, kind=KIND)
    num_bytes, (begin, end) = format.num_bytes(shape), offsets
    if num_bytes != end - begin:
        raise UnusableFile(
            file.path,
            KIND,
            f"tensor {name!r} of shape {shape} in {dtype} needs {num_bytes:,} bytes, and has {end - begin:,}",
        )
    return format.name, tuple(shape), begin, end


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**63 for item in value)


def _check_spans(spans: list[tuple[int, int, str]], start: int, file: MappedFile) -> None:
    """Check that the tensors follow one another to the end of the file, without gaps and without overlapping."""
    at = 0
    for begin, end, name in sorted(spans):
        if begin != at:
            problem = f"{begin - at:,} bytes too late" if begin > at else f"{at - begin:,} bytes inside the one before"
            raise UnusableFile(file.path, KIND, f"tensor {name!r} begins {problem}")
        at = end
    if start + at != file.num_bytes:
        rest = file.num_bytes - start - at
        raise UnusableFile(file.path, KIND, f"{rest:,} bytes follow after the last tensor")
