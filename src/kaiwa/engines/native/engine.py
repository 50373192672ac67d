"""The built-in CPU engine: a loaded model that continues sequences of token ids."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

from kaiwa.engines.engine import EngineInfo, Logprobs, Pooling, Sampled, Slice
from kaiwa.engines.native import _native, kv_cache, models, options, saved, threads
from kaiwa.engines.native.pieces import Piece
from kaiwa.engines.native.program import Program
from kaiwa.engines.native.sampler import make_sampler
from kaiwa.engines.native.sequences import Sequences
from kaiwa.engines.native.states import StatePool
from kaiwa.engines.native.weights import Weights
from kaiwa.errors import ContextOverflow, InvalidOption, NumericalError
from kaiwa.events import Progress
from kaiwa.sampling import Sampling
from kaiwa.weights.checkpoint import Checkpoint

MAX_STEP_TOKENS = 256
MAX_SEQUENCES = 256
FULL_CONTEXTS = 4
"""How many sequences of full context length the cache holds where nobody says how many tokens."""

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)


def load(
    checkpoint: Checkpoint,
    *,
    threads: int | None = None,
    context_length: int | None = None,
    cache_tokens: int | None = None,
    max_sequences: int = MAX_SEQUENCES,
    kv_dtype: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> NativeEngine:
    """Pack a checkpoint's weights and record its family's program; the checkpoint may be closed after.

    `context_length` in tokens, by default what the model was made for. `cache_tokens` is how many tokens all sequences
    together may hold, at least one context, and `max_sequences` how many there may be; memory is taken as they come.
    `kv_dtype` is what the key-value cache holds: "float16", "int8" in half the memory, or "float32", which is what a
    checkpoint in float32 gets by itself: whoever keeps one wants its exactness. The environment variable `KAIWA_ISA`
    forces an instruction-set tier.

    Raises `UnsupportedModel` or `InvalidOption`.
    """
    return NativeEngine(checkpoint, threads, context_length, cache_tokens, max_sequences, kv_dtype, on_progress)


class NativeEngine:
    """An `Engine` on the CPU."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        num_threads: int | None,
        context_length: int | None,
        cache_tokens: int | None,
        max_sequences: int,
        kv_dtype: str | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        config = checkpoint.config
        record = models.find(config["model_type"])
        isa = options.choose_isa()
        number_format = options.main_format(checkpoint)
        kv_dtype = options.choose_kv_dtype(kv_dtype, is_exact=number_format == "F32")
        context = options.choose_context(context_length, config["max_position_embeddings"])
        self._pool = _native.ThreadPool(threads.choose(num_threads))
        weights = Weights(checkpoint, self._pool, on_progress)
        program = Program()
        record(program, config, weights)
        num_blocks = kv_cache.num_blocks(max(context, cache_tokens or FULL_CONTEXTS * context))
        cache = _native.KvCache(program.cache_shapes, num_blocks, kv_dtype)
        blocks = kv_cache.BlockPool(cache)
        states = StatePool(program.state_sizes, max_sequences=max_sequences)
        self._program = program.compile(self._pool, cache, states.cache, max_rows=MAX_STEP_TOKENS, isa=isa)
        self._native = self._program.native
        self._long_after = program.long_after
        self._sequences = Sequences(blocks, states, max_sequences=max_sequences)
        fingerprint = saved.fingerprint(checkpoint, [kv_dtype, isa])
        self.info = EngineInfo(
            name=f"native ({options.ISA_WORDS[isa]}, {self._pool.num_threads} threads)",
            family=config["model_type"],
            number_format=number_format,
            vocab_size=config["vocab_size"],
            context_length=context,
            num_parameters=sum(_count(tensor.shape) for tensor in checkpoint.tensors.values()),
            weights_bytes=weights.num_bytes,
            cache_bytes_per_token=cache.block_bytes // kv_cache.BLOCK_TOKENS,
            max_step_tokens=MAX_STEP_TOKENS,
            cache_tokens=blocks.num_tokens,
            max_sequences=max_sequences,
            is_recurrent=states.has_layers,
            fingerprint=fingerprint.hex(),
        )
        self._layout = saved.Layout(
            fingerprint,
            blocks_bytes=blocks.contents_bytes,
            state_bytes=states.cache.slot_bytes,
            context_length=context,
            checksum=lambda data: _native.checksum(data, self._pool),
        )

    def open(self) -> int:
        return self._sequences.open()

    def configure(self, sequence: int, sampling: Sampling, *, prompt_ids: Sequence[int] = ()) -> None:
        configured = self._sequences[sequence]
        configured.sampler = make_sampler(sampling, vocab_size=self.info.vocab_size, prompt_ids=prompt_ids)
        configured.num_prompt_tokens = len(prompt_ids)

    def length(self, sequence: int) -> int:
        return self._sequences[sequence].length

    def keepable(self, sequence: int, length: int) -> int:
        return self._sequences.keepable(sequence, length)

    def truncate(self, sequence: int, length: int) -> None:
        self._sequences.truncate(sequence, length)

    def fork(self, sequence: int, length: int) -> int:
        return self._sequences.fork(sequence, length)

    def num_free_tokens(self) -> int:
        return self._sequences.num_free_tokens

    def close(self, sequence: int) -> None:
        self._sequences.close(sequence)

    def step(self, batch: Sequence[Slice]) -> list[Sampled | None]:
        if len({part.sequence for part in batch}) < len(batch):
            raise ValueError("a step takes one slice of a sequence; this one has two")
        parts = sorted(map(self._with_checkable_guesses, batch), key=self._ends_in_prompt)
        self._run(parts, [part.num_guesses + 1 if part.sample else 0 for part in parts])
        asked = [part for part in parts if part.sample]
        drawn = self._draw(asked)
        sampled = {part.sequence: self._settle(part, *tokens) for part, tokens in zip(asked, drawn, strict=True)}
        return [sampled.get(part.sequence) for part in batch]

    def score(self, token_ids: Sequence[int]) -> memoryview[float]:
        scores = bytearray()

        def keep(num_rows: int) -> None:
            nonlocal scores
            scores += self._native.read(self._program.logits, num_rows).cast("B")

        self._read(token_ids, keep)
        return memoryview(scores).cast("f", (len(token_ids), self.info.vocab_size))

    def embed(self, token_ids: Sequence[int], *, pooling: Pooling = "mean") -> memoryview[float]:
        if pooling not in POOLINGS or not token_ids:
            raise InvalidOption(
                f"{len(token_ids)} tokens with pooling={pooling!r} make no embedding",
                hint=f"give at least one token, and one of the poolings {', '.join(POOLINGS)}",
            )
        program, sums = self._program, array("d")

        def add(num_rows: int) -> None:
            first = num_rows - 1 if pooling == "last" else 0
            rows = program.native.add_up(program.hidden, program.norm, program.eps, first, num_rows)
            is_sum = pooling == "mean" and len(sums) > 0
            sums[:] = array("d", map(sum, zip(sums, rows, strict=True)) if is_sum else rows)

        self._read(token_ids, add, headless=True)
        count = len(token_ids) if pooling == "mean" else 1
        return memoryview(array("f", [number / count for number in sums]))

    def save(self, sequence: int) -> bytes:
        return self._layout.pack(self._sequences.contents(sequence))

    def restore(self, saved: bytes) -> int:
        return self._sequences.restore(self._layout.unpack(saved))

    def set_profiling(self, on: bool) -> None:
        """Measure each step of the program from now on, or no more; what was measured is forgotten."""
        self._native.set_profiling(on)

    def profile(self) -> list[tuple[str, float]]:
        """The kind of each step in order ("Linear"), and the seconds it took since profiling began."""
        return self._native.profile

    def shutdown(self) -> None:
        del self._native, self._program, self._sequences, self._layout, self._pool

    def _read(self, token_ids: Sequence[int], take: Callable[[int], None], *, headless: bool = False) -> None:
        """Compute a sequence of its own, and let `take` see the results of each piece's rows: so many."""
        handle = self.open()
        self._sequences[handle].num_prompt_tokens = len(token_ids)
        try:
            for start in range(0, len(token_ids), MAX_STEP_TOKENS):
                piece = token_ids[start : start + MAX_STEP_TOKENS]
                self._run([Slice(handle, piece)], [len(piece)], headless=headless)
                take(len(piece))
        finally:
            self.close(handle)

    def _run(self, batch: Sequence[Slice], num_rows: Sequence[int], *, headless: bool = False) -> None:
        """Compute the slices, those that end in prompts last; of each, the last `num_rows` come out, one after another.

        Of a slice that goes on beyond its prompt, these are of the answer.
        """
        writes = [self._write(part) for part in batch]
        plans = self._sequences.reserve(writes)
        token_ids: list[int] = []
        slices: list[_native.SliceTuple] = []
        rows: list[int] = []
        for part, write, plan, wanted in zip(batch, writes, plans, num_rows, strict=True):
            sequence = write.sequence
            sequence.is_long = self._is_long(sequence, write.end)
            if write.begin < sequence.length:
                self._read_again(sequence)
            *before, last = Piece(sequence, sequence.length, part.token_ids, plan).by_role()
            for piece in before:
                self._native.run(piece.token_ids, [piece.native], [])
            token_ids.extend(last.token_ids)
            rows.extend(range(len(token_ids) - wanted, len(token_ids)))
            slices.append(last.native)
        self._native.run(token_ids, slices, rows, headless)
        for part, write in zip(batch, writes, strict=True):
            if self._long_after:
                write.sequence.token_ids[write.sequence.length :] = part.token_ids
            write.sequence.length = write.end

    def _write(self, part: Slice) -> kv_cache.Write:
        """The positions that a slice writes.

        Longrope turns all positions of a long sequence by other angles than those of a short one. A sequence that grows
        long, or a long one that was cut short, is read again from its beginning within the step that finds it so: the
        same as if it had been read so at once, at the price of one long step.
        """
        sequence = self._sequences[part.sequence]
        end = sequence.length + len(part.token_ids)
        if end > self.info.context_length:
            raise ContextOverflow(end, self.info.context_length)
        is_other = self._is_long(sequence, end) != sequence.is_long
        return kv_cache.Write(sequence, 0 if is_other else sequence.length, end)

    def _is_long(self, sequence: kv_cache.Sequence, end: int) -> bool:
        return max(end, sequence.num_prompt_tokens) > self._long_after > 0

    def _read_again(self, sequence: kv_cache.Sequence) -> None:
        for start in range(0, sequence.length, MAX_STEP_TOKENS):
            token_ids = sequence.token_ids[start : min(start + MAX_STEP_TOKENS, sequence.length)]
            for piece in Piece(sequence, start, token_ids).by_role():
                self._native.run(piece.token_ids, [piece.native], [])

    def _ends_in_prompt(self, part: Slice) -> bool:
        sequence = self._sequences[part.sequence]
        return Piece(sequence, sequence.length, part.token_ids).is_prompt

    def _with_checkable_guesses(self, part: Slice) -> Slice:
        """The slice without guesses that one by one would be computed otherwise.

        These are those behind the border of longrope, and those that follow the prompt itself.
        """
        if not part.num_guesses:
            return part
        if self.info.is_recurrent or part.allowed is not None:
            raise ValueError("a slice has guesses where they cannot be taken back, or where not all tokens are allowed")
        sequence = self._sequences[part.sequence]
        certain = sequence.length + len(part.token_ids) - part.num_guesses
        if certain <= sequence.num_prompt_tokens:
            return replace(part, token_ids=part.token_ids[: len(part.token_ids) - part.num_guesses], num_guesses=0)
        if not max(certain, sequence.num_prompt_tokens) <= self._long_after < certain + part.num_guesses:
            return part
        left = self._long_after - certain
        num_ids = len(part.token_ids) - part.num_guesses + left
        return replace(part, token_ids=part.token_ids[:num_ids], num_guesses=left)

    def _draw(self, parts: Sequence[Slice]) -> list[tuple[list[int], list[_native.LogprobsTuple]]]:
        """The next tokens of slices whose logits were just computed, in this order; none where those are no numbers."""
        draws: list[_native.DrawTuple] = []
        row = 0
        for part in parts:
            sampler = self._sequences[part.sequence].sampler
            assert sampler is not None, "configure() comes before the first sampled token"
            guesses = part.token_ids[len(part.token_ids) - part.num_guesses :]
            num_logprobs = -1 if part.num_logprobs is None else part.num_logprobs
            draws.append((sampler, row, guesses, part.allowed, num_logprobs))
            row += 1 + part.num_guesses
        return self._native.draw(self._program.logits, draws)

    def _settle(self, part: Slice, token_ids: list[int], logprobs: list[_native.LogprobsTuple]) -> Sampled:
        if not token_ids:
            self._forget(part, part.num_guesses)
            return Sampled((), error=_overflow())
        self._forget(part, part.num_guesses + 1 - len(token_ids))
        return Sampled(tuple(token_ids), tuple(Logprobs(sampled, tuple(best)) for sampled, best in logprobs))

    def _forget(self, part: Slice, num_tokens: int) -> None:
        """Take the last tokens of a slice back."""
        if num_tokens:
            self._sequences.truncate(part.sequence, self._sequences[part.sequence].length - num_tokens)


def _overflow() -> NumericalError:
    return NumericalError(
        "the model computed a logit that is NaN or infinite",
        hint="its weights are damaged or too large for its arithmetic; try another file of it",
    )


def _count(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product
