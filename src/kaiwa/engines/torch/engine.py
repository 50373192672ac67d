"""The torch engine: a causal language model of transformers behind the Engine protocol."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from kaiwa.engines.engine import EngineInfo, Logprobs, Pooling, Sampled, Slice
from kaiwa.engines.native._native import Sampler
from kaiwa.engines.native.sampler import make_sampler
from kaiwa.engines.torch.memory import Block, Memory
from kaiwa.engines.torch.model import Model
from kaiwa.engines.torch.rows import Row, forwards
from kaiwa.errors import ContextOverflow, InvalidOption, NumericalError, OutOfMemory
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
    """An `Engine` made of a model that transformers has loaded.

    A step computes sequences together, as rows of one forward that padding makes equally long, and each by itself where
    the model cannot be padded. Tokens are drawn by the built-in engine's sampler.
    """

    def __init__(self, model: Any, *, name: str, number_format: str = "", context_length: int | None = None) -> None:
        self._torch = require("torch", feature="the torch engine", extra="torch")
        transformers = require("transformers", feature="the torch engine", extra="torch")
        self._model = Model(self._torch, transformers, model)
        self._memories = self._model.memories
        self._sequences: dict[int, _Sequence] = {}
        self._next_handle = 0
        context = self._model.context_length(context_length)
        dtype = self._model.dtype
        self.info = EngineInfo(
            name=f"torch ({name}, {dtype})",
            family=str(self._model.config.model_type),
            number_format=number_format or _BITS.get(dtype, dtype),
            vocab_size=int(self._model.config.vocab_size),
            context_length=context,
            num_parameters=self._model.num_parameters,
            weights_bytes=self._model.weights_bytes,
            cache_bytes_per_token=self._model.cache_bytes_per_token,
            max_step_tokens=MAX_STEP_TOKENS,
            cache_tokens=_FULL_CONTEXTS * context,
            max_sequences=MAX_SEQUENCES,
            is_recurrent=self._memories.are_recurrent,
            fingerprint=self._model.fingerprint(),
        )

    def open(self) -> int:
        return self._add(_Sequence(self._memories.empty()))

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
        kept, held = self.keepable(sequence, length), self._sequences[sequence]
        if kept < held.memory.length:
            held.memory = held.memory.cut(kept) if kept else self._memories.empty()
            del held.token_ids[kept:]

    def fork(self, sequence: int, length: int) -> int:
        original, kept = self._sequences[sequence], self.keepable(sequence, length)
        if not kept:
            return self.open()
        memory = original.memory.twin() if self.info.is_recurrent else original.memory.cut(kept)
        return self._add(_Sequence(memory, token_ids=original.token_ids[:kept], is_long=original.is_long))

    def num_free_tokens(self) -> int:
        return self.info.cache_tokens - sum(sequence.memory.length for sequence in self._sequences.values())

    def close(self, sequence: int) -> None:
        del self._sequences[sequence]

    def step(self, batch: Sequence[Slice]) -> list[Sampled | None]:
        if len({part.sequence for part in batch}) < len(batch):
            raise ValueError("a step takes one slice of a sequence; this one has two")
        self._check_room(batch)
        logits = self._compute([self._row(part.sequence, part.token_ids, part.num_guesses + 1) for part in batch])
        return [self._sampled(part, logits[part.sequence]) if part.sample else None for part in batch]

    def embed(self, token_ids: Sequence[int], *, pooling: Pooling = "mean") -> memoryview[float]:
        if pooling not in ("mean", "last") or not token_ids:
            raise InvalidOption(
                f"{len(token_ids)} tokens with pooling={pooling!r} make no embedding",
                hint="give at least one token, and one of the poolings mean, last",
            )
        states = self._model.states(token_ids)
        pooled = states.mean(dim=0) if pooling == "mean" else states[-1]
        return memoryview(pooled.cpu().numpy().copy())

    def save(self, sequence: int) -> bytes:
        held = self._sequences[sequence]
        return self._memories.pack(
            held.memory, fingerprint=self.info.fingerprint, token_ids=held.token_ids, is_long=held.is_long
        )

    def restore(self, saved: bytes) -> int:
        memory, content = self._memories.unpack(saved, fingerprint=self.info.fingerprint, device=self._model.device)
        return self._add(_Sequence(memory, token_ids=content["token_ids"], is_long=content["is_long"]))

    def score(self, token_ids: Sequence[int]) -> memoryview[float]:
        sequence = self.open()
        try:
            rows = []
            for start in range(0, len(token_ids), MAX_STEP_TOKENS):
                piece = token_ids[start : start + MAX_STEP_TOKENS]
                rows.append(self._compute([self._row(sequence, piece, len(piece))])[sequence])
            return memoryview(self._torch.cat(rows).numpy())
        finally:
            self.close(sequence)

    def shutdown(self) -> None:
        self._sequences.clear()
        del self._model
        if self._torch.cuda.is_available():
            self._torch.cuda.empty_cache()

    def _add(self, sequence: _Sequence) -> int:
        handle, self._next_handle = self._next_handle, self._next_handle + 1
        self._sequences[handle] = sequence
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

    def _row(self, handle: int, token_ids: Sequence[int], num_logits: int) -> Row:
        """What is to be computed: all of a sequence, where longrope turns it by other angles from here on."""
        held = self._sequences[handle]
        is_long = 0 < self._model.long_after < held.memory.length + len(token_ids)
        if is_long != held.is_long and held.memory.length:
            return Row(handle, self._memories.empty(), (), [*held.token_ids, *token_ids], num_logits, is_long)
        return Row(handle, held.memory, held.token_ids, token_ids, num_logits, is_long)

    def _compute(self, rows: Sequence[Row]) -> dict[int, Any]:
        """The logits after the last tokens of each sequence, by its handle."""
        logits: dict[int, Any] = {}
        before = {row.memory.block for row in rows if row.memory.block.num_rows > 1}
        for group in forwards(rows) if self._model.can_pad else [[row] for row in rows]:
            if self.info.is_recurrent:  # an error would leave its state half changed
                self._sequences[group[0].sequence].memory = self._memories.empty()
            found, memories = self._model.forward(group)
            for row, memory, tail in zip(group, memories, found, strict=True):
                held = self._sequences[row.sequence]
                held.token_ids[row.memory.length :] = row.token_ids
                held.memory, held.is_long = memory, row.is_long
                logits[row.sequence] = tail[len(tail) - row.num_logits :]
        self._leave(before - {self._sequences[row.sequence].memory.block for row in rows})
        return logits

    def _leave(self, blocks: Set[Block]) -> None:
        """Copy what sequences have in blocks that others have left: a block is in memory as long as one row is."""
        for held in self._sequences.values() if blocks else ():
            if held.memory.block in blocks:
                held.memory = self._memories.alone(held.memory)

    def _sampled(self, part: Slice, logits: Any) -> Sampled:
        """What is drawn after the tokens of a slice."""
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
