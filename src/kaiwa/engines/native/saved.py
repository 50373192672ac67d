"""A sequence as bytes: what `NativeEngine.save` gives and `restore` takes. Checked as any file is, before it is used.

    8 bytes   "KAIWASEQ"
    u32       version
    32 bytes  fingerprint of the model and of the options that decide what a sequence holds
    4 u32     length, whether it was read as a long one, number of token ids, number of states
    …         token ids (i32), the cache's blocks, and each state after the length (u32) that it stands for
    u64       checksum of all before

Numbers are little-endian, the cache's contents as this machine keeps them.
"""

from __future__ import annotations

import hashlib
import json
import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kaiwa.errors import UnusableFile
from kaiwa.weights.checkpoint import Checkpoint

MAGIC = b"KAIWASEQ"
VERSION = 1
_HEADER = struct.Struct("<8sI32sIIII")
_LENGTH = struct.Struct("<I")
_CHECKSUM = struct.Struct("<Q")
_SAMPLE_BYTES = 4096

Checksum = Callable[[memoryview], int]


@dataclass(frozen=True, slots=True)
class Saved:
    """All that an engine holds of a sequence. `states` are those of recurrent layers, after so many tokens each."""

    length: int
    is_long: bool
    token_ids: Sequence[int]
    blocks: bytes | memoryview
    states: Sequence[tuple[int, bytes | memoryview]]


@dataclass(frozen=True, slots=True)
class Layout:
    """What an engine's saved sequences look like: their fingerprint, and the bytes of their parts."""

    fingerprint: bytes
    blocks_bytes: Callable[[int], int]
    """Of so many tokens."""
    state_bytes: int
    context_length: int
    checksum: Checksum

    def pack(self, saved: Saved) -> bytes:
        """The sequence as bytes."""
        header = _HEADER.pack(
            MAGIC, VERSION, self.fingerprint, saved.length, saved.is_long, len(saved.token_ids), len(saved.states)
        )
        states = [piece for length, state in saved.states for piece in (_LENGTH.pack(length), state)]
        content = b"".join([header, array("i", saved.token_ids).tobytes(), saved.blocks, *states])
        return content + _CHECKSUM.pack(self.checksum(memoryview(content)))

    def unpack(self, data: bytes) -> Saved:
        """The sequence that `pack` was given. Raises `UnusableFile`."""
        whole = memoryview(data)
        if len(whole) < _HEADER.size + _CHECKSUM.size or whole[: len(MAGIC)] != MAGIC:
            raise _unusable("it does not begin as one")
        _, version, fingerprint, length, is_long, num_ids, num_states = _HEADER.unpack_from(whole)
        if version != VERSION:
            raise _unusable(f"it has version {version}, and this Kaiwa writes and reads {VERSION}")
        if fingerprint != self.fingerprint:
            raise _unusable("it was saved by another model, or one with other options")
        blocks_begin = _HEADER.size + 4 * num_ids
        states_begin = blocks_begin + self.blocks_bytes(length)
        end = states_begin + num_states * (_LENGTH.size + self.state_bytes)
        if length > self.context_length or num_ids not in (0, length) or end + _CHECKSUM.size != len(whole):
            raise _unusable(f"its {len(whole):,} bytes are not what {length:,} tokens take")
        (checksum,) = _CHECKSUM.unpack_from(whole, end)
        if checksum != self.checksum(whole[:end]):
            raise _unusable("its checksum is wrong")
        begins = range(states_begin, end, _LENGTH.size + self.state_bytes)
        states = [
            (_LENGTH.unpack_from(whole, at)[0], whole[at + _LENGTH.size : at + _LENGTH.size + self.state_bytes])
            for at in begins
        ]
        token_ids = array("i", whole[_HEADER.size : blocks_begin].tobytes()).tolist()
        return Saved(length, bool(is_long), token_ids, whole[blocks_begin:states_begin], states)


def fingerprint(checkpoint: Checkpoint, options: Sequence[Any]) -> bytes:
    """32 bytes that differ for models with other weights and for engines with other `options`.

    Of each tensor the beginning, the middle and the end are looked at: training changes all of it.
    """
    digest = hashlib.sha256(json.dumps([dict(checkpoint.config), *options], sort_keys=True, default=str).encode())
    for name, tensor in sorted(checkpoint.tensors.items()):
        digest.update(json.dumps([name, tensor.format, tensor.shape, tensor.num_bytes]).encode())
        for place in (0, tensor.num_bytes // 2, max(0, tensor.num_bytes - _SAMPLE_BYTES)):
            digest.update(tensor.data[place : place + _SAMPLE_BYTES])
        checkpoint.release(tensor)
    return digest.digest()


def _unusable(reason: str) -> UnusableFile:
    return UnusableFile("what was saved", "sequence", reason, hint="compute its tokens again")
