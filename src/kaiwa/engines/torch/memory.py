"""What a transformers model remembers of one sequence: keys and values, or a state where layers have one.

Layers of keys and values grow by making new tensors, never in place. So sequences that begin alike share theirs, and
cutting one short leaves the others as they are.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiwa.errors import UnusableFile

_GROWING = ("DynamicLayer", "DynamicSlidingWindowLayer")


def is_recurrent(transformers: Any, config: Any) -> bool:
    """Whether a model has layers that remember a sequence as one state, which cannot be taken back."""
    layers = transformers.DynamicCache(config=config).layers
    return any(type(layer).__name__ not in _GROWING for layer in layers)


@dataclass(slots=True)
class Memory:
    """The memory of one sequence of `length` tokens, in a cache of transformers."""

    cache: Any
    length: int = 0

    @classmethod
    def empty(cls, transformers: Any, config: Any, *, recurrent: bool) -> Memory:
        """That of an empty sequence. Windows are masked, not forgotten, so that it can go back to any length."""
        return cls(transformers.DynamicCache(config=config) if recurrent else transformers.DynamicCache())

    def cut(self, length: int) -> None:
        """Keep the first tokens only."""
        for layer in self.cache.layers:
            if layer.is_initialized:
                layer.keys, layer.values = layer.keys[..., :length, :], layer.values[..., :length, :]
        self.length = length

    def beginning(self, transformers: Any, length: int) -> Memory:
        """A memory of the first tokens, which shares their tensors."""
        twin = transformers.DynamicCache()
        for index, layer in enumerate(self.cache.layers):
            if layer.is_initialized:
                twin.update(layer.keys[..., :length, :], layer.values[..., :length, :], index)
        return Memory(twin, length)

    def twin(self) -> Memory:
        """A copy of all of it, for layers with a state."""
        return Memory(copy.deepcopy(self.cache), self.length)

    def pack(self, torch: Any, fingerprint: str) -> bytes:
        """All of it as bytes."""
        layers = [
            {"keys": layer.keys, "values": layer.values} if layer.is_initialized else {} for layer in self.cache.layers
        ]
        buffer = io.BytesIO()
        torch.save({"fingerprint": fingerprint, "length": self.length, "layers": layers}, buffer)
        return buffer.getvalue()

    @classmethod
    def unpack(cls, torch: Any, transformers: Any, saved: bytes, *, fingerprint: str, device: Any) -> Memory:
        """What `pack` gave. Raises `UnusableFile` where it is damaged, or of another model."""
        try:
            content: Mapping[str, Any] = torch.load(io.BytesIO(saved), map_location=device, weights_only=True)
            found, length, layers = content["fingerprint"], int(content["length"]), content["layers"]
        except Exception as error:  # torch raises anything for damaged bytes
            raise UnusableFile("the saved sequence", "sequence", f"it is damaged: {error}") from error
        if found != fingerprint:
            raise UnusableFile("the saved sequence", "sequence", "it is of another model, or of other options")
        cache = transformers.DynamicCache()
        for index, layer in enumerate(layers):
            if layer:
                cache.update(layer["keys"], layer["values"], index)
        return cls(cache, length)
