"""The torch engine: a causal language model of transformers behind the Engine protocol."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kaiwa.engines.engine import EngineInfo, Logprobs, Pooling, Sampled, Slice
from kaiwa.engines.native._native import Sampler
from kaiwa.engines.native.sampler import make_sampler
from kaiwa.engines.torch.memory import Memory, is_recurrent
from kaiwa.errors import ContextOverflow, InvalidOption, NumericalError, OutOfMemory, UnsupportedModel
from kaiwa.extras import require
from kaiwa.sampling import Sampling

MAX_STEP_TOKENS = 512
MAX_SEQUENCES = 64
_FULL_CONTEXTS = 4
_BITS = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


@dataclass(slots=True)
class _Sequence:
    """`token_ids` are those in the memory; `is_long` says by which of longrope's angles they are turned."""

    memory: Memory
    sampler: Sampler | None = None
    token_ids: list[int] = field(default_factory=list)
    is_long: bool = False


class TorchEngine:
    """An `Engine` made of a model that transformers has loaded, on whatever device it is.

    Sequences are computed one after the other, each with a cache of its own: so what is computed of one cannot depend
    on the others. Tokens are drawn by the built-in engine's sampler.
    """

    def __init__(self, model: Any, *, name: str, number_format: str = "", context_length: int | None = None) -> None:
        self._torch = require("torch", feature="the torch engine", extra="torch")
        self._transformers = require("transformers", feature="the torch engine", extra="torch")
        self._model = model.eval()
        config = model.config.get_text_config(decoder=True)
        self._config = config
        takes = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in takes else "past_key_values"  # its name before transformers 5.24
        self._long_after = _long_after(config)
        self._can_skip_logits = "logits_to_keep" in takes
        self._sequences: dict[int, _Sequence] = {}
        self._next_handle = 0
        longest = int(getattr(config, "max_position_embeddings", 0) or 2048)
        context = _checked(context_length, longest)
        parameters = list(model.parameters())
        dtype = str(model.dtype).removeprefix("torch.")
        self.info = EngineInfo(
            name=f"torch ({name}, {dtype})",
            family=str(config.model_type),
            number_format=number_format or _BITS.get(dtype, dtype),
            vocab_size=int(config.vocab_size),
            context_length=context,
            num_parameters=sum(parameter.numel() for parameter in parameters),
            weights_bytes=int(model.get_memory_footprint()),
            cache_bytes_per_token=_cache_bytes_per_token(config, model.dtype.itemsize),
            max_step_tokens=MAX_STEP_TOKENS,
            cache_tokens=_FULL_CONTEXTS * context,
            max_sequences=MAX_SEQUENCES,
            is_recurrent=is_recurrent(self._transformers, config),
        )
        self.info = replace(self.info, fingerprint=self._fingerprint())

    def open(self) -> int:
        recurrent = self.info.is_recurrent
        return self._add(Memory.empty(self._transformers, self._config, recurrent=recurrent))

    def configure(self, sequence: int, sampling: Sampling, *, prompt_ids: Sequence[int] = ()) -> None:
        sampler = make_sampler(sampling, vocab_size=self.info.vocab_size, prompt_ids=prompt_ids)
        self._sequences[sequence].sampler = sampler

    def length(self, sequence: int) -> int:
        return self._sequences[sequence].memory.length

    def keepable(self, sequence: int, length: int) -> int:
        computed = self.length(sequence)
        if self.info.is_recurrent and length < computed:
            return 0
        return min(length, computed)

    def truncate(self, sequence: int, length: int) -> None:
        kept = self.keepable(sequence, length)
        if kept == self.length(sequence):
            return
        if kept:
            self._sequences[sequence].memory.cut(kept)
        else:
            recurrent = self.info.is_recurrent
            self._sequences[sequence].memory = Memory.empty(self._transformers, self._config, recurrent=recurrent)

    def fork(self, sequence: int, length: int) -> int:
        memory, kept = self._sequences[sequence].memory, self.keepable(sequence, length)
        if not kept:
            return self.open()
        twin = memory.twin() if self.info.is_recurrent else memory.beginning(self._transformers, kept)
        handle, original = self._add(twin), self._sequences[sequence]
        self._sequences[handle].token_ids = original.token_ids[:kept]
        self._sequences[handle].is_long = original.is_long
        return handle

    def num_free_tokens(self) -> int:
        return self.info.cache_tokens - sum(sequence.memory.length for sequence in self._sequences.values())

    def close(self, sequence: int) -> None:
        del self._sequences[sequence]

    def step(self, batch: Sequence[Slice]) -> list[Sampled | None]:
        if len({part.sequence for part in batch}) < len(batch):
            raise ValueError("a step takes one slice of a sequence; this one has two")
        self._check_room(batch)
        return [self._compute(part) for part in batch]

    def embed(self, token_ids: Sequence[int], *, pooling: Pooling = "mean") -> memoryview[float]:
        if pooling not in ("mean", "last") or not token_ids:
            raise InvalidOption(
                f"{len(token_ids)} tokens with pooling={pooling!r} make no embedding",
                hint="give at least one token, and one of the poolings mean, last",
            )
        with self._torch.inference_mode():
            output = self._model.base_model(input_ids=self._ids(token_ids), use_cache=False)
            states = output.last_hidden_state[0].float()
            pooled = states.mean(dim=0) if pooling == "mean" else states[-1]
            return memoryview(pooled.cpu().numpy().copy())

    def save(self, sequence: int) -> bytes:
        if self.info.is_recurrent or self._long_after:
            raise UnsupportedModel(f"sequences of {self.info.family} cannot be saved by the torch engine")
        return self._sequences[sequence].memory.pack(self._torch, self._fingerprint())

    def restore(self, saved: bytes) -> int:
        return self._add(
            Memory.unpack(
                self._torch, self._transformers, saved, fingerprint=self._fingerprint(), device=self._model.device
            )
        )

    def score(self, token_ids: Sequence[int]) -> memoryview[float]:
        handle = self.open()
        try:
            rows = [
                self._forward(handle, token_ids[start : start + MAX_STEP_TOKENS], MAX_STEP_TOKENS)
                for start in range(0, len(token_ids), MAX_STEP_TOKENS)
            ]
            return memoryview(self._torch.cat(rows).numpy())
        finally:
            self.close(handle)

    def shutdown(self) -> None:
        self._sequences.clear()
        del self._model
        if self._torch.cuda.is_available():
            self._torch.cuda.empty_cache()

    def _add(self, memory: Memory) -> int:
        handle, self._next_handle = self._next_handle, self._next_handle + 1
        self._sequences[handle] = _Sequence(memory)
        return handle

    def _check_room(self, batch: Sequence[Slice]) -> None:
        for part in batch:
            end = self.length(part.sequence) + len(part.token_ids)
            if end > self.info.context_length:
                raise ContextOverflow(end, self.info.context_length)
            if part.num_guesses and (self.info.is_recurrent or part.allowed is not None):
                raise ValueError("a slice has guesses where they cannot be taken back, or where not all is allowed")
        needed = sum(len(part.token_ids) for part in batch)
        if needed > self.num_free_tokens():
            raise OutOfMemory(
                f"the sequences would take {needed:,} tokens more, and {self.num_free_tokens():,} are left",
                hint="close a sequence first",
            )

    def _compute(self, part: Slice) -> Sampled | None:
        """One slice: its logits, and what is drawn from them."""
        logits = self._forward(part.sequence, part.token_ids, part.num_guesses + 1 if part.sample else 1)
        if not part.sample:
            return None
        sampler = self._sequences[part.sequence].sampler
        assert sampler is not None, "configure() comes before the first sampled token"
        guesses = part.token_ids[len(part.token_ids) - part.num_guesses :]
        drawn: list[int] = []
        logprobs: list[Logprobs] = []
        for row, guess in zip(logits, [*guesses, None], strict=True):
            drawn.append(self._draw(sampler, row, part.allowed))
            if part.num_logprobs is not None:
                logprobs.append(self._logprobs(row, drawn[-1], part.num_logprobs))
            if drawn[-1] != guess:
                break
        if wrong := part.num_guesses + 1 - len(drawn):
            self.truncate(part.sequence, self.length(part.sequence) - wrong)
        return Sampled(tuple(drawn), tuple(logprobs))

    def _forward(self, handle: int, token_ids: Sequence[int], num_rows: int) -> Any:
        """Compute tokens of a sequence; the logits after the last `num_rows` of them, in float32 on the CPU."""
        token_ids = self._with_those_to_read_again(handle, token_ids)
        memory = self._sequences[handle].memory
        torch, end = self._torch, memory.length + len(token_ids)
        with torch.inference_mode():
            output = self._model(
                input_ids=self._ids(token_ids),
                position_ids=torch.arange(memory.length, end, device=self._model.device)[None],
                use_cache=True,
                **{self._cache_name: memory.cache},
                **({"logits_to_keep": num_rows} if self._can_skip_logits else {}),
            )
            memory.length = end
            return output.logits[0, -num_rows:].float().cpu()

    def _with_those_to_read_again(self, handle: int, token_ids: Sequence[int]) -> Sequence[int]:
        """The tokens to compute: all of the sequence, where longrope turns them by other angles from here on."""
        if not self._long_after:
            return token_ids
        sequence = self._sequences[handle]
        is_long = sequence.memory.length + len(token_ids) > self._long_after
        before = sequence.token_ids[: sequence.memory.length]
        sequence.token_ids = [*before, *token_ids]
        if is_long == sequence.is_long or not before:
            sequence.is_long = is_long
            return token_ids
        sequence.is_long = is_long
        sequence.memory = Memory.empty(self._transformers, self._config, recurrent=False)
        return sequence.token_ids

    def _ids(self, token_ids: Sequence[int]) -> Any:
        return self._torch.tensor([list(token_ids)], device=self._model.device)

    def _draw(self, sampler: Sampler, row: Any, allowed: bytes | None) -> int:
        try:
            return sampler.sample(row.contiguous().numpy(), allowed)
        except RuntimeError as error:
            raise NumericalError(str(error), hint="its numbers overflow in this format; try dtype='float32'") from error

    def _logprobs(self, row: Any, token_id: int, count: int) -> Logprobs:
        values = self._torch.log_softmax(row.double(), dim=-1)
        best, ids = self._torch.topk(values, count) if count else ((), ())
        pairs = tuple((int(other), float(value)) for other, value in zip(ids, best, strict=True))
        return Logprobs(float(values[token_id]), pairs)

    def _fingerprint(self) -> str:
        """What tells this model and its numbers from others."""
        first = next(iter(self._model.parameters())).detach().flatten()[:1024].float().cpu().numpy().tobytes()
        return hashlib.sha256(f"{self.info.name}{self._config}".encode() + first).hexdigest()


def _checked(context_length: int | None, longest: int) -> int:
    if context_length is None:
        return longest
    if isinstance(context_length, bool) or not isinstance(context_length, int) or not 2 <= context_length <= longest:
        raise InvalidOption(
            f"context_length={context_length!r} is impossible",
            hint=f"it must be a whole number from 2 to {longest:,}, which this model was made for",
        )
    return context_length


def _cache_bytes_per_token(config: Any, number_bytes: int) -> int:
    """As far as the configuration says; 0 for models without heads."""
    layers = getattr(config, "per_layer_config", None) or [config] * int(config.num_hidden_layers)
    numbers = 0
    for layer in layers:
        num_heads = int(getattr(layer, "num_attention_heads", 0) or 0)
        heads = int(getattr(layer, "num_key_value_heads", None) or num_heads)
        numbers += heads * int(getattr(layer, "head_dim", None) or config.hidden_size // max(num_heads, 1))
    return 2 * number_bytes * numbers


def _long_after(config: Any) -> int:
    """The length after which longrope turns all positions of a sequence by other angles; 0 for other ropes."""
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") != "longrope":
        return 0
    original = rope.get("original_max_position_embeddings") or config.original_max_position_embeddings
    return int(original)
