"""The built-in CPU engine: a loaded model that continues sequences of token ids."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence

from kaiwa.engines.engine import EngineInfo, Slice
from kaiwa.engines.native import _native, kv_cache, models, states, threads
from kaiwa.engines.native.program import Program
from kaiwa.engines.native.weights import Weights
from kaiwa.errors import ContextOverflow, InvalidOption, NumericalError, did_you_mean
from kaiwa.events import Progress
from kaiwa.sampling import Sampling
from kaiwa.weights.checkpoint import Checkpoint

MAX_STEP_TOKENS = 256
MAX_SEQUENCES = 4
"""How many sequences of full context length the cache has address space for."""

KV_DTYPES = {"float16": 2, "float32": 4}
"""What the key-value cache may hold, and the bytes of one number."""

ISA_WORDS = {"amx": "AMX", "avx512": "AVX-512 VNNI", "avx2": "AVX2", "neon": "Arm NEON", "portable": "portable"}


def load(
    checkpoint: Checkpoint,
    *,
    threads: int | None = None,
    context_length: int | None = None,
    kv_dtype: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> NativeEngine:
    """Pack a checkpoint's weights and record its family's program; the checkpoint may be closed after.

    `context_length` in tokens, by default what the model was made for. `kv_dtype`, what the key-value cache holds, is
    "float16", or "float32" for a checkpoint in float32: whoever keeps one wants its exactness. The environment variable
    `KAIWA_ISA` forces an instruction-set tier. Raises `UnsupportedModel` or `InvalidOption`.
    """
    return NativeEngine(checkpoint, threads, context_length, kv_dtype, on_progress)


class NativeEngine:
    """An `Engine` on the CPU."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        num_threads: int | None,
        context_length: int | None,
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
        cache = _make_cache(program.cache_shapes, context, is_single=kv_dtype == "float32")
        self._blocks = kv_cache.BlockPool(cache)
        self._states = states.StatePool(program.state_sizes)
        self._native, self._logits_slot = program.compile(
            self._pool, cache, self._states.cache, max_rows=MAX_STEP_TOKENS, isa=isa
        )
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
        )

    def open(self) -> int:
        sequence = self._next_sequence
        self._next_sequence += 1
        self._sequences[sequence] = kv_cache.Sequence()
        return sequence

    def configure(self, sequence: int, sampling: Sampling, *, prompt_ids: Sequence[int] = ()) -> None:
        sampler = _native.Sampler(
            greedy=sampling.is_greedy,
            temperature=sampling.temperature,
            top_k=min(sampling.top_k, self.info.vocab_size),
            top_p=sampling.top_p,
            min_p=sampling.min_p,
            repetition_penalty=sampling.repetition_penalty,
            presence_penalty=sampling.presence_penalty,
            frequency_penalty=sampling.frequency_penalty,
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

    def close(self, sequence: int) -> None:
        closed = self._sequences.pop(sequence)
        self._states.close(closed)
        self._blocks.truncate(closed, 0)

    def step(self, batch: Sequence[Slice]) -> list[int | None]:
        logit_rows = self._run(batch, [part.sample for part in batch])
        sampled: list[int | None] = []
        for part in batch:
            sampler = self._sequences[part.sequence].sampler
            if not part.sample:
                sampled.append(None)
                continue
            assert sampler is not None, "configure() comes before the first sampled token"
            row = sum(token is not None for token in sampled)
            try:
                sampled.append(self._native.sample(sampler, self._logits_slot, row))
            except RuntimeError as error:
                raise NumericalError(
                    str(error), hint="its weights are damaged or too large for its arithmetic; try another file of it"
                ) from error
        assert len(logit_rows) == sum(token is not None for token in sampled)
        return sampled

    def score(self, token_ids: Sequence[int]) -> memoryview[float]:
        sequence = self.open()
        self._sequences[sequence].is_long = 0 < self._long_after < len(token_ids)
        scores = bytearray()
        try:
            for start in range(0, len(token_ids), MAX_STEP_TOKENS):
                chunk = token_ids[start : start + MAX_STEP_TOKENS]
                self._run([Slice(sequence, chunk)], [True], all_rows=True)
                scores += self._native.read(self._logits_slot, len(chunk)).cast("B")
        finally:
            self.close(sequence)
        return memoryview(scores).cast("f", (len(token_ids), self.info.vocab_size))

    def set_profiling(self, on: bool) -> None:
        """Measure each step of the program from now on, or no more; what was measured is forgotten."""
        self._native.set_profiling(on)

    def profile(self) -> list[tuple[str, float]]:
        """The kind of each step in order ("Linear"), and the seconds it took since profiling began."""
        return self._native.profile

    def shutdown(self) -> None:
        self._sequences.clear()
        del self._native, self._blocks, self._states, self._pool

    def _run(self, batch: Sequence[Slice], wanted: Sequence[bool], *, all_rows: bool = False) -> list[int]:
        """Compute the slices; the rows whose logits lie in the logits slot, in order."""
        token_ids: list[int] = []
        slices = []
        logit_rows: list[int] = []
        for part, is_wanted in zip(batch, wanted, strict=True):
            sequence = self._sequences[part.sequence]
            end = sequence.length + len(part.token_ids)
            if end > self.info.context_length:
                raise ContextOverflow(end, self.info.context_length)
            self._blocks.extend(sequence, end)
            if self._long_after:
                self._choose_frequencies(sequence, end)
            plan = self._states.plan(sequence, len(part.token_ids))
            slices.append(
                (
                    sequence.length,
                    len(part.token_ids),
                    sequence.blocks,
                    sequence.is_long,
                    plan.state,
                    plan.checkpoint,
                    plan.checkpoint_tokens,
                )
            )
            first = len(token_ids)
            token_ids.extend(part.token_ids)
            if is_wanted:
                logit_rows.extend(range(first if all_rows else len(token_ids) - 1, len(token_ids)))
        self._native.run(token_ids, slices, logit_rows)
        for part in batch:
            sequence = self._sequences[part.sequence]
            if self._long_after:
                sequence.token_ids[sequence.length :] = part.token_ids
            sequence.length += len(part.token_ids)
        return logit_rows

    def _choose_frequencies(self, sequence: kv_cache.Sequence, end: int) -> None:
        """Longrope turns all positions of a long sequence by other angles than those of a short one.

        A sequence that grows long, or a long one that was cut short, is read again from its beginning within the step
        that finds it so: the same as if it had been read so at once, at the price of one long step.
        """
        is_long = max(end, sequence.num_prompt_tokens) > self._long_after
        if is_long == sequence.is_long:
            return
        sequence.is_long = is_long
        for start in range(0, sequence.length, MAX_STEP_TOKENS):
            chunk = sequence.token_ids[start : min(start + MAX_STEP_TOKENS, sequence.length)]
            self._native.run(chunk, [(start, len(chunk), sequence.blocks, is_long, -1, -1, 0)], [])


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


def _make_cache(shapes: Sequence[tuple[int, int]], context: int, *, is_single: bool) -> _native.KvCache:
    num_blocks = MAX_SEQUENCES * -(-context // kv_cache.BLOCK_TOKENS)
    return _native.KvCache(shapes, num_blocks, is_single)


def _count(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product
