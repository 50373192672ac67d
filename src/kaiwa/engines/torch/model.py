"""A causal language model of transformers: what its configuration says, and one forward over rows of sequences."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kaiwa.engines.torch.memory import Memories, Memory
from kaiwa.engines.torch.rows import Row
from kaiwa.errors import InvalidOption, UnsupportedModel

_HALF_DONE = -1
"""The columns of a block that a forward is adding to: where it fails, nothing may be added behind them."""
_FORGETFUL = ("mamba", "falcon_mamba", "jamba", "zamba")
"""Families whose layers go on from a state by one token only: what they read of several begins anew."""


class Model:
    """The model, on whatever device it is.

    `can_pad` says whether sequences can be rows of one forward: not where layers have a state, where the model does not
    let itself be told what is padding and which positions tokens have, and where the longest row turns all others
    ("dynamic" angles). `long_after` is the length after which longrope turns all positions of a sequence by other
    angles; 0 for other ropes.
    """

    def __init__(self, torch: Any, transformers: Any, model: Any) -> None:
        self._torch = torch
        self._model = model.eval()
        self._takes = inspect.signature(model.forward).parameters
        self.config = model.config.get_text_config(decoder=True)
        names = [name for name in ("cache", "past_key_values") if name in self._takes]  # the second before 5.24
        if not names:
            raise UnsupportedModel(
                f"{self.config.model_type} of transformers keeps nothing of what it has read, which chats need",
                hint="choose another model",
            )
        self._cache_name = names[0]
        self.memories = Memories(torch, transformers, self.config)
        rope: Mapping[str, Any] = getattr(self.config, "rope_parameters", None) or {}
        can_be_told = {"attention_mask", "position_ids"} <= self._takes.keys()
        self.can_pad = can_be_told and not self.memories.are_recurrent and rope.get("rope_type") != "dynamic"
        self.long_after = 0
        if rope.get("rope_type") == "longrope":
            original = rope.get("original_max_position_embeddings") or self.config.original_max_position_embeddings
            self.long_after = int(original)

    @property
    def device(self) -> Any:
        """Where inputs go."""
        return self._model.device

    @property
    def dtype(self) -> str:
        """The numbers that it computes in: "bfloat16"."""
        return str(self._model.dtype).removeprefix("torch.")

    @property
    def num_parameters(self) -> int:
        """How many numbers it is made of."""
        return sum(parameter.numel() for parameter in self._model.parameters())

    @property
    def weights_bytes(self) -> int:
        """What it takes in memory."""
        return int(self._model.get_memory_footprint())

    @property
    def cache_bytes_per_token(self) -> int:
        """As far as the configuration says; 0 for models without heads."""
        config = self.config
        numbers = 0
        for layer in getattr(config, "per_layer_config", None) or [config] * int(config.num_hidden_layers):
            num_heads = int(getattr(layer, "num_attention_heads", 0) or 0)
            heads = int(getattr(layer, "num_key_value_heads", None) or num_heads)
            numbers += heads * int(getattr(layer, "head_dim", None) or config.hidden_size // max(num_heads, 1))
        return 2 * int(self._model.dtype.itemsize) * numbers

    def context_length(self, wanted: int | None) -> int:
        """How long a sequence may be. Raises `InvalidOption` where more is wanted than the model was made for."""
        longest = int(getattr(self.config, "max_position_embeddings", 0) or 2048)
        if wanted is None:
            return longest
        if isinstance(wanted, bool) or not isinstance(wanted, int) or not 2 <= wanted <= longest:
            raise InvalidOption(
                f"context_length={wanted!r} is impossible",
                hint=f"it must be a whole number from 2 to {longest:,}, which this model was made for",
            )
        return wanted

    def forward(self, rows: Sequence[Row]) -> tuple[Any, list[Memory]]:
        """The logits after the last tokens of the rows, in float32 on the processor, and what their memories become.

        The logits have the shape (rows, the most that a row wants, vocab_size).
        """
        if self.config.model_type in _FORGETFUL and rows[0].memory.length and len(rows[0].token_ids) > 1:
            return self._one_by_one(rows[0])
        torch = self._torch
        block = self.memories.block_of([row.memory for row in rows])
        width = max(len(row.token_ids) for row in rows)
        end = block.num_columns + width
        starts = torch.tensor([[end - row.length] for row in rows])
        ids = torch.tensor([[*[0] * (width - len(row.token_ids)), *row.token_ids] for row in rows])
        inputs = {"input_ids": ids}
        if "position_ids" in self._takes:
            inputs["position_ids"] = (torch.arange(end - width, end) - starts).clamp(min=0)
        if starts.any():
            inputs["attention_mask"] = (torch.arange(end) >= starts).long()
        most = max(row.num_logits for row in rows)
        options: dict[str, Any] = {"use_cache": True, self._cache_name: block.cache}
        if "logits_to_keep" in self._takes:
            options["logits_to_keep"] = most
        block.num_columns = _HALF_DONE
        with torch.inference_mode():
            output = self._model(**{name: value.to(self.device) for name, value in inputs.items()}, **options)
        block.num_columns = end
        memories = [Memory(block, place, end - row.length, row.length) for place, row in enumerate(rows)]
        return output.logits[:, -most:].float().cpu(), memories

    def _one_by_one(self, row: Row) -> tuple[Any, list[Memory]]:
        logits, memory = [], row.memory
        for token_id in row.token_ids:
            found, [memory] = self.forward([replace(row, memory=memory, token_ids=[token_id], num_logits=1)])
            logits.append(found)
        return self._torch.cat(logits[-row.num_logits :], dim=1), [memory]

    def states(self, token_ids: Sequence[int]) -> Any:
        """The final hidden states of a fresh sequence: float32, shape (tokens, hidden_size)."""
        ids = self._torch.tensor([list(token_ids)], device=self.device)
        with self._torch.inference_mode():
            return self._model.base_model(input_ids=ids, use_cache=False).last_hidden_state[0].float()

    def fingerprint(self) -> str:
        """What tells this model and its numbers from others."""
        first = next(iter(self._model.parameters())).detach().flatten()[:1024].float().cpu().numpy().tobytes()
        return hashlib.sha256(f"{self.device.type} {self.dtype} {self.config}".encode() + first).hexdigest()
