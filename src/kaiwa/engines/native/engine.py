"""The built-in CPU engine: a loaded model that continues sequences of token ids."""

from __future__ import annotations

import os
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

from kaiwa.engines.engine import EngineInfo, Logprobs, Pooling, Sampled, Slice
from kaiwa.engines.native import _native, kv_cache, models, saved, states, threads
from kaiwa.engines.native.program import Program
from kaiwa.engines.native.weights import Weights
from kaiwa.errors import ContextOverflow, InvalidOption, NumericalError, did_you_mean
from kaiwa.events import Progress
from kaiwa.sampling import Sampling
from kaiwa.weights.checkpoint import Checkpoint

MAX_STEP_TOKENS = 256
FULL_CONTEXTS = 4
"""How many sequences of full context length the cache holds where nobody says how many tokens."""

KV_DTYPES = {"float16": 2, "float32": 4}
"""What the key-value cache may hold, and the bytes of one number."""

POOLINGS: tuple[Pooling, ...] = get_args(Pooling)

ISA_WORDS = {"amx": "AMX", "avx512": "AVX-512 VNNI", "avx2": "AVX2", "neon": "Arm NEON", "portable": "portable"}


def load(
    checkpoint: Checkpoint,
    *,
    threads: int | None = None,
    context_length: int | None = None,
    cache_tokens: int | None = None,
    kv_dtype: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> NativeEngine:
    """Pack a checkpoint's weights and record its family's program; the checkpoint may be closed after.

    `context_length` in tokens, by default what the model was made for. `cache_tokens` is how many tokens all sequences
    together may hold, at least one context; memory is taken as they come. `kv_dtype`, what the key-value cache holds,
    is "float16", or "float32" for a checkpoint in float32: whoever keeps one wants its exactness. The environment
    variable `KAIWA_ISA` forces an instruction-set tier. Raises `UnsupportedModel` or `InvalidOption`.
    """
    return NativeEngine(checkpoint, threads, context_length, cache_tokens, kv_dtype, on_progress)


class NativeEngine:
    """An `Engine` on the CPU."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        num_threads: int | None,
        context_length: int | None,
        cache_tokens: int | None,
        kv_dtype: str | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        config = checkpoint.config
        record = models.find(config["model_type"])
        isa = _choose_isa()
        kv_dtype = choose_kv_dtype(kv_dtype, is_exact=main_format(checkpoint) == "F32")
        context = _choose_context(context_length, config["max_position_embeddings"])
        self._pool = _native.ThreadPool(threads.choose(num_threads))
        weights = Weights(checkpoint, self._pool, on_progress)
        program = Program()
        record(program, config, weights)
        num_blocks = kv_cache.num_blocks(max(context, cache_tokens or FULL_CONTEXTS * context))
        cache = _native.KvCache(program.cache_shapes, num_blocks, kv_dtype == "float32")
        self._blocks = kv_cache.BlockPool(cache)
        self._states = states.StatePool(program.state_sizes)
        self._program = program.compile(self._pool, cache, self._states.cache, max_rows=MAX_STEP_TOKENS, isa=isa)
        self._native = self._program.native
        self._long_after = program.long_after
        self._sequences: dict[int, kv_cache.Sequence] = {}
        self._next_sequence = 0
        self.info = EngineInfo(
            name=f"native ({ISA_WORDS[isa]}, {self._pool.num_threads} threads)",
            family=config["model_type"],
            number_format=main_format(checkpoint),
            vocab_size=config["vocab_size"],
            context_length=context,
            num_parameters=sum(_count(tensor.shape) for tensor in checkpoint.tensors.values()),
            weights_bytes=weights.num_bytes,
            cache_bytes_per_token=cache.block_bytes // kv_cache.BLOCK_TOKENS,
            max_step_tokens=MAX_STEP_TOKENS,
            cache_tokens=self._blocks.num_tokens,
            is_recurrent=self._states.has_layers,
        )
        self._layout = saved.Layout(
            saved.fingerprint(checkpoint, [kv_dtype, isa, program.cache_shapes, program.state_sizes]),
            blocks_bytes=self._blocks.contents_bytes,
            state_bytes=self._states.cache.slot_bytes,
            context_length=context,
            checksum=lambda data: _native.checksum(data, self._pool),
        )

    def open(self) -> int:
        return self._add(kv_cache.Sequence(self._blocks.new_table()))

    def configure(self, sequence: int, sampling: Sampling, *, prompt_ids: Sequence[int] = ()) -> None:
        if unknown := [token_id for token_id in sampling.logit_bias if token_id >= self.info.vocab_size]:
            raise InvalidOption(
                f"logit_bias has the token {unknown[0]}",
                hint=f"the tokens that this model knows are 0 to {self.info.vocab_size - 1}",
            )
        sampler = _native.Sampler(
            greedy=sampling.is_greedy,
            temperature=sampling.temperature,
            top_k=min(sampling.top_k, self.info.vocab_size),
            top_p=sampling.top_p,
            min_p=sampling.min_p,
            repetition_penalty=sampling.repetition_penalty,
            presence_penalty=sampling.presence_penalty,
            frequency_penalty=sampling.frequency_penalty,
            logit_bias=list(sampling.logit_bias.items()),
            seed=sampling.seed if sampling.seed is not None else int.from_bytes(os.urandom(8)) >> 1,
            vocab_size=self.info.vocab_size,
        )
        sampler.set_prompt(prompt_ids)
        self._sequences[sequence].sampler = sampler
        self._sequences[sequence].num_prompt_tokens = len(prompt_ids)

    def length(self, sequence: int) -> int:
        return self._sequences[sequence].length

    def keepable(self, sequence: int, length: int) -> int:
        return self._states.keepable(self._sequences[sequence], length)

    def truncate(self, sequence: int, length: int) -> None:
        cut = self._sequences[sequence]
        length = self._states.keepable(cut, length)
        self._states.truncate(cut, length)
        self._blocks.truncate(cut, length)

    def fork(self, sequence: int, length: int) -> int:
        source = self._sequences[sequence]
        length = self._states.keepable(source, length)
        twin = kv_cache.Sequence(self._blocks.new_table(), is_long=source.is_long, token_ids=source.token_ids[:length])
        self._states.fork(source, length, twin)
        self._blocks.fork(source, length, twin)
        return self._add(twin)

    def num_free_tokens(self) -> int:
        return self._blocks.num_free_tokens(self._sequences.values())

    def close(self, sequence: int) -> None:
        closed = self._sequences.pop(sequence)
        self._states.close(closed)
        self._blocks.truncate(closed, 0)

    def step(self, batch: Sequence[Slice]) -> list[Sampled | None]:
        if len({part.sequence for part in batch}) < len(batch):
            raise ValueError("a step takes one slice of a sequence; this one has two")
        batch = [self._with_checkable_guesses(part) for part in batch]
        self._run(batch, [part.num_guesses + 1 if part.sample else 0 for part in batch])
        drawn = iter(self._draw([part for part in batch if part.sample]))
        return [self._settle(part, *next(drawn)) if part.sample else None for part in batch]

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
        kept = self._sequences[sequence]
        return self._layout.pack(
            saved.Saved(
                kept.length,
                kept.is_long,
                kept.token_ids[: kept.length],
                self._blocks.contents(kept),
                self._states.contents(kept),
            )
        )

    def restore(self, saved: bytes) -> int:
        found = self._layout.unpack(saved)
        sequence = kv_cache.Sequence(self._blocks.new_table(), is_long=found.is_long, token_ids=list(found.token_ids))
        self._blocks.fill(sequence, found.length, found.blocks)
        self._states.fill(sequence, found.states)
        return self._add(sequence)

    def set_profiling(self, on: bool) -> None:
        """Measure each step of the program from now on, or no more; what was measured is forgotten."""
        self._native.set_profiling(on)

    def profile(self) -> list[tuple[str, float]]:
        """The kind of each step in order ("Linear"), and the seconds it took since profiling began."""
        return self._native.profile

    def shutdown(self) -> None:
        self._sequences.clear()
        del self._native, self._blocks, self._states, self._pool

    def _add(self, sequence: kv_cache.Sequence) -> int:
        handle = self._next_sequence
        self._next_sequence += 1
        self._sequences[handle] = sequence
        return handle

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
        """Compute the slices; of each, the last `num_rows` come out, one after another."""
        writes = [self._write(part) for part in batch]
        plans = [
            self._states.plan(write.sequence, len(part.token_ids)) for write, part in zip(writes, batch, strict=True)
        ]
        self._blocks.reserve(writes)
        token_ids: list[int] = []
        slices: list[_native.SliceTuple] = []
        rows: list[int] = []
        for part, write, plan, wanted in zip(batch, writes, plans, num_rows, strict=True):
            sequence = write.sequence
            sequence.is_long = self._is_long(sequence, write.end)
            if write.begin < sequence.length:
                self._read_again(sequence)
            count = len(part.token_ids)
            token_ids.extend(part.token_ids)
            rows.extend(range(len(token_ids) - wanted, len(token_ids)))
            slices.append(
                (
                    sequence.length,
                    count,
                    sequence.blocks,
                    sequence.is_long,
                    plan.state,
                    plan.checkpoint,
                    plan.checkpoint_tokens,
                )
            )
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
            piece = sequence.token_ids[start : min(start + MAX_STEP_TOKENS, sequence.length)]
            self._native.run(piece, [(start, len(piece), sequence.blocks, sequence.is_long, -1, -1, 0)], [])

    def _with_checkable_guesses(self, part: Slice) -> Slice:
        """The slice without guesses that one by one would be computed otherwise: behind the border of longrope."""
        if not part.num_guesses:
            return part
        if self.info.is_recurrent or part.allowed is not None:
            raise ValueError("a slice has guesses where they cannot be taken back, or where not all tokens are allowed")
        sequence = self._sequences[part.sequence]
        certain = sequence.length + len(part.token_ids) - part.num_guesses
        if not max(certain, sequence.num_prompt_tokens) <= self._long_after < certain + part.num_guesses:
            return part
        left = self._long_after - certain
        num_ids = len(part.token_ids) - part.num_guesses + left
        return replace(part, token_ids=part.token_ids[:num_ids], num_guesses=left)

    def _draw(self, parts: Sequence[Slice]) -> list[tuple[list[int], list[_native.LogprobsTuple]]]:
        """The next tokens of slices whose logits were just computed, in this order."""
        draws: list[_native.DrawTuple] = []
        row = 0
        for part in parts:
            sampler = self._sequences[part.sequence].sampler
            assert sampler is not None, "configure() comes before the first sampled token"
            guesses = part.token_ids[len(part.token_ids) - part.num_guesses :]
            num_logprobs = -1 if part.num_logprobs is None else part.num_logprobs
            draws.append((sampler, row, guesses, part.allowed, num_logprobs))
            row += 1 + part.num_guesses
        try:
            return self._native.draw(self._program.logits, draws)
        except RuntimeError as error:
            for part in parts:
                self._forget(part, part.num_guesses)
            raise NumericalError(
                str(error), hint="its weights are damaged or too large for its arithmetic; try another file of it"
            ) from error

    def _settle(self, part: Slice, token_ids: list[int], logprobs: list[_native.LogprobsTuple]) -> Sampled:
        self._forget(part, part.num_guesses + 1 - len(token_ids))
        return Sampled(tuple(token_ids), tuple(Logprobs(sampled, tuple(best)) for sampled, best in logprobs))

    def _forget(self, part: Slice, num_tokens: int) -> None:
        """Take the last tokens of a slice back."""
        if num_tokens:
            sequence = self._sequences[part.sequence]
            self._blocks.truncate(sequence, sequence.length - num_tokens)


def choose_kv_dtype(requested: str | None, *, is_exact: bool) -> str:
    """What the key-value cache holds: `requested`, or what goes with weights that are exact or not.

    Raises `InvalidOption` for a name that is not known.
    """
    if requested is None:
        return "float32" if is_exact else "float16"
    if requested not in KV_DTYPES:
        raise InvalidOption(f"kv_dtype={requested!r} is not known", hint=did_you_mean(str(requested), KV_DTYPES))
    return requested


def main_format(checkpoint: Checkpoint) -> str:
    """The number format of most of the weights' bytes in layers; embeddings are often stored more finely."""
    sizes: Counter[str] = Counter()
    for tensor in checkpoint.tensors.values():
        if len(tensor.shape) >= 2:
            sizes[tensor.format] += tensor.num_bytes
    return sizes.most_common(1)[0][0] if sizes else "none"


def _choose_isa() -> str:
    available = _native.available_isas()
    forced = os.environ.get("KAIWA_ISA", "")
    if forced and forced not in available:
        raise InvalidOption(
            f"KAIWA_ISA={forced} names an instruction set that this processor or build does not have",
            hint=did_you_mean(forced, available),
        )
    return forced or available[0]


def _choose_context(requested: int | None, longest: int) -> int:
    if requested is None:
        return longest
    if not 1 <= requested <= longest:
        raise InvalidOption(
            f"context_length={requested:,} is impossible",
            hint=f"this model's context holds 1 to {longest:,} tokens",
        )
    return requested


def _count(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product
