"""GGUF files: a strict reader that maps the file into memory and checks everything before it is used.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. A header of counts, then keys with values, then
a list of tensors, then the tensors' bytes.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaiwa.errors import UnsupportedFormat, UnusableFile
from kaiwa.weights import file_kinds
from kaiwa.weights.checkpoint import Tensor
from kaiwa.weights.formats import GGML_FORMATS, check_shape, check_supported
from kaiwa.weights.gguf_header import KIND, TOO_SHORT, U32, U64, HeaderReader
from kaiwa.weights.mapped_file import MappedFile

VERSIONS = (2, 3)
MAX_DIMENSIONS = 4
PART = re.compile(r"(?P<stem>.*)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})\.gguf")
"""The name of one part of a split file."""

_DEFAULT_ALIGNMENT = 32
_MIN_KEY_BYTES = 8 + 1 + 4 + 1
_MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8


@dataclass(frozen=True, slots=True)
class GGUFFile:
    """An opened GGUF model, of one file or several parts, in the file's own words.

    `metadata` holds text as `str`, arrays of text, truths or arrays as lists, and arrays of numbers as `array.array`
    (which is compact, and not equal to a list with the same items).
    """

    paths: tuple[Path, ...]
    metadata: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    release: Callable[[Tensor], None]
    check: Callable[[], None]
    close: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Part:
    """One file, read. `ranges` says where in the file each tensor lies: (begin, end) in bytes."""

    file: MappedFile
    metadata: dict[str, Any]
    tensors: dict[str, Tensor]
    ranges: dict[str, tuple[int, int]]


def read(path: Path) -> GGUFFile:
    """Open a GGUF file, or all parts of a split one from any of its parts.

    Raises `ModelNotFound` where there is no such file, `UnusableFile` where it breaks a rule of the format, and
    `UnsupportedFormat` for versions and number formats that Kaiwa does not read.
    """
    with ExitStack() as opened:
        parts = []
        paths = tuple(_part_paths(path))
        for part_path in paths:
            file = MappedFile(part_path, KIND)
            opened.callback(file.close)
            parts.append(_read_part(file))
        _check_parts(parts)
        tensors = _join(parts)
        homes = {name: (part.file, *part.ranges[name]) for part in parts for name in part.tensors}

        def release(tensor: Tensor) -> None:
            file, begin, end = homes[tensor.name]
            file.release(begin, end)

        def check() -> None:
            for part in parts:
                part.file.check()

        return GGUFFile(paths, parts[0].metadata, tensors, release, check, opened.pop_all().close)


def read_metadata(path: Path) -> dict[str, Any]:
    """The keys of one file, also where its tensors have formats that Kaiwa does not read. Raises what `read` raises."""
    file = MappedFile(path, KIND)
    try:
        return _read_keys(HeaderReader(file))[0]
    finally:
        file.close()


def peek(path: Path, wanted: str) -> Any:
    """The value of one key, or None: read only as far as it stands, and the architecture stands first. For choosing."""
    file = MappedFile(path, KIND)
    try:
        reader = HeaderReader(file)
        _, num_keys = _read_counts(reader)
        return next((value for key, value in _keys(reader, num_keys) if key == wanted), None)
    finally:
        file.close()


def _part_paths(path: Path) -> list[Path]:
    match = PART.fullmatch(path.name)
    if not match or not file_kinds.exists(path):
        return [path]
    number, count = int(match["number"]), int(match["count"])
    if not 1 <= number <= count:
        raise UnusableFile(path, KIND, f"its name says that it is part {number} of {count}")
    paths = [path.with_name(f"{match['stem']}-{index:05}-of-{count:05}.gguf") for index in range(1, count + 1)]
    for index, other in enumerate(paths, 1):
        if not file_kinds.exists(other):
            raise UnusableFile(
                path,
                KIND,
                f"it is part {number} of {count}, and part {index} is missing: {other.name}",
                hint="put all parts into one folder",
            )
    return paths


def _check_parts(parts: list[_Part]) -> None:
    """Check what the parts say about each other: `split.no` counts from 0."""
    for index, part in enumerate(parts):
        count = part.metadata.get("split.count", 1)
        if count != len(parts):
            raise UnusableFile(
                part.file.path,
                KIND,
                f"it is one of {count} parts, and its name says one of {len(parts)}",
                hint="parts must be named like model-00001-of-00003.gguf",
            )
        number = part.metadata.get("split.no", 0)
        if number != index:
            raise UnusableFile(part.file.path, KIND, f"its name says part {index + 1}, and split.no is {number}")
    expected = parts[0].metadata.get("split.tensors.count") if len(parts) > 1 else None
    found = sum(len(part.tensors) for part in parts)
    if expected is not None and expected != found:
        raise UnusableFile(
            parts[0].file.path, KIND, f"all parts together should hold {expected} tensors, and hold {found}"
        )


def _join(parts: list[_Part]) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for part in parts:
        for name, tensor in part.tensors.items():
            if name in tensors:
                raise UnusableFile(part.file.path, KIND, f"tensor {name!r} is in an earlier part, too")
            tensors[name] = tensor
    return tensors


def _read_part(file: MappedFile) -> _Part:
    reader = HeaderReader(file)
    metadata, num_tensors = _read_keys(reader)
    alignment = _alignment(metadata, reader)
    infos = [_read_info(reader, index) for index in range(num_tensors)]
    start = -(-reader.at // alignment) * alignment
    ranges = _ranges(infos, start, alignment, reader)
    tensors = {
        info.name: Tensor(info.name, GGML_FORMATS[info.type].name, info.shape, file.view(*ranges[info.name]))
        for info in infos
    }
    file.release(0, reader.at)
    file.read_in_order()
    return _Part(file, metadata, tensors, ranges)


def _read_keys(reader: HeaderReader) -> tuple[dict[str, Any], int]:
    """The keys with their values, and the number of tensors, whose list follows."""
    num_tensors, num_keys = _read_counts(reader)
    metadata: dict[str, Any] = {}
    for key, value in _keys(reader, num_keys):
        if key in metadata:
            raise reader.failure(f"key {key!r} is there twice")
        metadata[key] = value
    return metadata, num_tensors


def _read_counts(reader: HeaderReader) -> tuple[int, int]:
    """How many tensors and keys the file has."""
    _check_magic(reader.file, reader)
    return reader.count("tensors", _MIN_TENSOR_BYTES), reader.count("keys", _MIN_KEY_BYTES)


def _keys(reader: HeaderReader, count: int) -> Iterator[tuple[str, Any]]:
    for index in range(count):
        key = reader.text(f"the name of key {index}")
        yield key, reader.value(reader.number(U32, f"the type of key {key!r}"), f"key {key!r}")


def _check_magic(file: MappedFile, reader: HeaderReader) -> None:
    magic = file.data[:4]
    if magic == b"FUGG":
        raise _wrong_byte_order(file)
    if magic != b"GGUF":
        what, hint = file_kinds.describe(file.data[:256]) or (
            f"it begins with {magic!r} and not with b'GGUF'",
            "a model is a .gguf file, or a folder with config.json and safetensors",
        )
        raise UnusableFile(file.path, KIND, what, hint=hint)
    reader.at = 4
    version = reader.number(U32, "the version")
    if sys.byteorder == "big" or (version & 0xFFFF == 0 and version != 0):
        raise _wrong_byte_order(file)
    if version not in VERSIONS:
        raise UnsupportedFormat(
            file.path,
            KIND,
            f"it has version {version} of the format; Kaiwa reads {' and '.join(map(str, VERSIONS))}",
            hint="get a newer file of the model" if version < min(VERSIONS) else "a newer Kaiwa may read it",
        )


def _wrong_byte_order(file: MappedFile) -> UnsupportedFormat:
    written_for = "little-endian" if sys.byteorder == "big" else "big-endian"
    return UnsupportedFormat(
        file.path,
        KIND,
        f"it was written for {written_for} machines, and this one is {sys.byteorder}-endian",
        hint=f"get the {sys.byteorder}-endian file of the model",
    )


def _alignment(metadata: Mapping[str, Any], reader: HeaderReader) -> int:
    alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or isinstance(alignment, bool) or alignment < 1 or alignment & (alignment - 1):
        raise reader.failure(f"general.alignment is {alignment!r}, which is not a power of two")
    return alignment


@dataclass(frozen=True, slots=True)
class _TensorInfo:
    """A row of the list of tensors. `offset` counts from where the tensors' bytes start."""

    name: str
    shape: tuple[int, ...]
    type: int
    offset: int


def _read_info(reader: HeaderReader, index: int) -> _TensorInfo:
    name = reader.text(f"the name of tensor {index}")
    what = f"tensor {name!r}"
    num_dimensions = reader.number(U32, what)
    if not 1 <= num_dimensions <= MAX_DIMENSIONS:
        raise reader.failure(f"{what} has {num_dimensions} dimensions; a tensor has 1 to {MAX_DIMENSIONS}")
    # A file names the shortest stride first: columns, rows, …
    shape = tuple(reader.number(U64, what) for _ in range(num_dimensions))[::-1]
    if 0 in shape:
        raise reader.failure(f"{what} has the shape {shape}, which holds nothing")
    type = reader.number(U32, what)
    if type not in GGML_FORMATS:
        raise UnsupportedFormat(reader.file.path, KIND, f"{what} has number format {type}, which Kaiwa does not know")
    format = GGML_FORMATS[type]
    check_shape(format, shape, tensor=name, path=reader.file.path, kind=KIND)
    check_supported(format, tensor=name, path=reader.file.path, kind=KIND)
    return _TensorInfo(name, shape, type, reader.number(U64, what))


def _ranges(
    infos: Iterable[_TensorInfo], start: int, alignment: int, reader: HeaderReader
) -> dict[str, tuple[int, int]]:
    """Where each tensor begins and ends in the file, checked against the file and against each other."""
    ranges: dict[str, tuple[int, int]] = {}
    for info in infos:
        if info.name in ranges:
            raise reader.failure(f"tensor {info.name!r} is there twice")
        if info.offset % alignment:
            raise reader.failure(
                f"tensor {info.name!r} lies at offset {info.offset:,}, which is not a multiple of {alignment}"
            )
        begin = start + info.offset
        end = begin + GGML_FORMATS[info.type].num_bytes(info.shape)
        if end > reader.file.num_bytes:
            past = end - reader.file.num_bytes
            raise reader.failure(f"tensor {info.name!r} ends {past:,} bytes past the end of the file", hint=TOO_SHORT)
        ranges[info.name] = (begin, end)
    in_order = sorted(ranges, key=ranges.__getitem__)
    for before, after in itertools.pairwise(in_order):
        overlap = ranges[before][1] - ranges[after][0]
        if overlap > 0:
            raise reader.failure(f"tensors {before!r} and {after!r} overlap by {overlap:,} bytes")
    return ranges
