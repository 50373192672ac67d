"""From a model's name to its parts in memory: the files, the tokenizer and template, and an engine that holds it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from kaiwa.engines.engine import Engine
from kaiwa.errors import InvalidOption, OutOfMemory, did_you_mean
from kaiwa.runtime.loading.budget import Budget, current_budget
from kaiwa.runtime.loading.memory import available_bytes
from kaiwa.runtime.loading.parts import EngineOptions, OnProgress, Parts, check_threads
from kaiwa.runtime.loading.planning import Plan, plan
from kaiwa.sampling import Sampling
from kaiwa.text.templates.chat_template import ChatTemplate
from kaiwa.text.tokens.tokenizer import Tokenizer
from kaiwa.weights.checkpoint import Checkpoint
from kaiwa.weights.hub import DEFAULT_MODEL as DEFAULT_MODEL

ENGINES = ("auto", "native", "torch", "llama-cpp")

COMFORTABLE_CONTEXT_LENGTH = 4096
"""A model whose context would be shorter takes more than its share of the memory."""


def load(
    model: str | os.PathLike[str],
    options: EngineOptions,
    *,
    engine: str | Engine,
    on_progress: OnProgress | None,
) -> Parts:
    """Find or download `model`, and load it; an `engine` that is no name is taken as it is.

    Raises what `LLM` says.
    """
    from kaiwa.runtime.loading import engine_choice, torch_loading
    from kaiwa.weights.hub import display_name, recommended, resolve
    from kaiwa.weights.open import open_checkpoint
    from kaiwa.weights.pooling import declared_pooling

    _check_engine(engine)
    check_threads(options.threads)
    if not isinstance(engine, str) and options != EngineOptions():
        raise InvalidOption(
            "an engine that is loaded already has its threads, context_length, quantization and kv_dtype",
            hint='leave them out, or pass engine="native"',
        )
    path = resolve(model, on_progress=on_progress)
    name, recommended_options = display_name(model, path), recommended(model)
    if isinstance(engine, str) and engine_choice.wants_torch(path, engine, options.quantization):
        return torch_loading.load(path, options, name=name, recommended=recommended_options, on_progress=on_progress)
    checkpoint = open_checkpoint(path)
    try:
        tokenizer = tokenizer_of(checkpoint)
        template = _template(tokenizer)
        pooling = declared_pooling(checkpoint)
        sampling = Sampling.from_generation_config({**recommended_options, **checkpoint.generation_config})
        if isinstance(engine, str):
            engine = _load_engine(checkpoint, options, on_progress)
    finally:
        checkpoint.close()  # the engine has packed its own
    return Parts(name, engine, tokenizer, template, sampling, pooling)


def plan_of(path: Path) -> Plan:
    """What the model at `path` would take of the memory that is free now, on the built-in engine as nobody sets it.

    Raises `OutOfMemory` with the arithmetic, and what opening it raises.
    """
    from kaiwa.weights.open import open_checkpoint

    with closing(open_checkpoint(path)) as checkpoint:
        return _planner(checkpoint, EngineOptions(), _kv_dtype(checkpoint, EngineOptions()))(available_bytes())


def _kv_dtype(checkpoint: Checkpoint, options: EngineOptions) -> str:
    from kaiwa.engines.native.options import choose_kv_dtype, main_format

    is_exact = options.quantization is None and main_format(checkpoint) == "F32"
    return choose_kv_dtype(options.kv_dtype, is_exact=is_exact)


def _planner(checkpoint: Checkpoint, options: EngineOptions, kv_dtype: str) -> Callable[[int | None], Plan]:
    """What plans the model into so many bytes."""
    from kaiwa.engines.native.options import KV_DTYPES
    from kaiwa.weights import quantize

    quantization = options.quantization
    sizes = quantize.possible_bytes(checkpoint)
    weights_bytes = checkpoint.num_bytes if quantization is None else quantize.quantized_bytes(checkpoint, quantization)

    def plan_in(available_bytes: int | None) -> Plan:
        return plan(
            checkpoint.config,
            weights_bytes,
            context_length=options.context_length,
            available_bytes=available_bytes,
            cache_bytes=KV_DTYPES[kv_dtype],
            smaller={name: num_bytes for name, num_bytes in sizes.items() if num_bytes < weights_bytes},
        )

    return plan_in


def _load_engine(checkpoint: Checkpoint, options: EngineOptions, on_progress: OnProgress | None) -> Engine:
    from kaiwa.engines.native import engine, rounding
    from kaiwa.weights import quantize

    quantization, kv_dtype = options.quantization, _kv_dtype(checkpoint, options)
    planned = _planned(_planner(checkpoint, options, kv_dtype))

    def load(checkpoint: Checkpoint) -> Engine:
        return engine.load(
            checkpoint,
            threads=options.threads,
            context_length=planned.context_length,
            cache_tokens=planned.cache_tokens,
            max_sequences=planned.max_sequences,
            kv_dtype=kv_dtype,
            on_progress=on_progress,
        )

    if quantization is None:
        return load(checkpoint)
    rounder = rounding.Rounder(options.threads)
    with closing(
        quantize.quantize(checkpoint, quantization, rounder=rounder, on_progress=on_progress or (lambda progress: None))
    ) as quantized:
        return load(quantized)


def _planned(plan_in: Callable[[int | None], Plan]) -> Plan:
    """The plan for what memory is free, after others have made room where several models share it."""
    budget = current_budget()
    if budget is None:
        return plan_in(available_bytes())
    wanted = plan_in(available_bytes()) if budget.most_bytes is None else _within_share(plan_in, budget)
    budget.admit(wanted.total_bytes)
    possible = plan_in(available_bytes())
    return min(wanted, possible, key=lambda planned: planned.total_bytes)


def _within_share(plan_in: Callable[[int | None], Plan], budget: Budget) -> Plan:
    most = plan_in(budget.most_bytes)
    try:
        fair = plan_in(budget.share_bytes)
    except OutOfMemory:
        return most
    return fair if fair.context_length >= min(COMFORTABLE_CONTEXT_LENGTH, most.context_length) else most


def tokenizer_of(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer that comes with a checkpoint. Raises `UnusableFile` or `UnsupportedFormat`."""
    if checkpoint.kind == "GGUF":
        return Tokenizer.from_gguf(checkpoint.metadata, path=checkpoint.path)
    declared = checkpoint.generation_config.get("eos_token_id")
    end_ids = declared if isinstance(declared, list) else [] if declared is None else [declared]
    return Tokenizer.from_folder(checkpoint.path, end_ids=end_ids)


def _template(tokenizer: Tokenizer) -> ChatTemplate | None:
    return ChatTemplate.of(tokenizer) if tokenizer.chat_template else None


def _check_engine(engine: str | Engine) -> None:
    if isinstance(engine, str) and engine not in ENGINES:
        raise InvalidOption(f"there is no engine {engine!r}", hint=did_you_mean(engine, ENGINES))
