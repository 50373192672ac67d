"""From a model's name to its parts in memory: the files, the tokenizer and template, and an engine that holds it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from kaiwa.engines.engine import Engine
from kaiwa.errors import InvalidOption, did_you_mean
from kaiwa.events import Progress
from kaiwa.runtime.memory import available_bytes
from kaiwa.runtime.planning import plan
from kaiwa.sampling import Sampling
from kaiwa.text.chat_template import ChatTemplate
from kaiwa.text.tokenizer import Tokenizer
from kaiwa.weights.checkpoint import Checkpoint
from kaiwa.weights.hub import DEFAULT_MODEL as DEFAULT_MODEL

ENGINES = ("auto", "native")

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How an engine holds a model; None is what the model and the machine suggest."""

    threads: int | None = None
    context_length: int | None = None
    quantization: str | None = None
    kv_dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """A model in memory. Without a `template` it cannot read conversations. `sampling` are its own defaults."""

    name: str
    engine: Engine
    tokenizer: Tokenizer
    template: ChatTemplate | None
    sampling: Sampling


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
    from kaiwa.weights.hub import display_name, recommended, resolve
    from kaiwa.weights.open import open_checkpoint

    _check_engine(engine)
    _check_threads(options.threads)
    if not isinstance(engine, str) and options != EngineOptions():
        raise InvalidOption(
            "an engine that is loaded already has its threads, context_length, quantization and kv_dtype",
            hint='leave them out, or pass engine="native"',
        )
    path = resolve(model, on_progress=on_progress)
    checkpoint = open_checkpoint(path)
    try:
        tokenizer = _tokenizer(checkpoint)
        template = _template(tokenizer)
        sampling = Sampling.from_generation_config({**recommended(model), **checkpoint.generation_config})
        if isinstance(engine, str):
            engine = _load_engine(checkpoint, options, on_progress)
    finally:
        checkpoint.close()  # the engine has packed its own
    return Parts(display_name(model, path), engine, tokenizer, template, sampling)


def _load_engine(checkpoint: Checkpoint, options: EngineOptions, on_progress: OnProgress | None) -> Engine:
    from kaiwa.engines.native import engine, rounding
    from kaiwa.engines.native.options import KV_DTYPES, choose_kv_dtype, main_format
    from kaiwa.weights import quantize

    quantization = options.quantization
    sizes = quantize.possible_bytes(checkpoint)
    weights_bytes = checkpoint.num_bytes if quantization is None else quantize.quantized_bytes(checkpoint, quantization)
    is_exact = quantization is None and main_format(checkpoint) == "F32"
    kv_dtype = choose_kv_dtype(options.kv_dtype, is_exact=is_exact)
    planned = plan(
        checkpoint.config,
        weights_bytes,
        context_length=options.context_length,
        available_bytes=available_bytes(),
        cache_number_bytes=KV_DTYPES[kv_dtype],
        smaller={name: num_bytes for name, num_bytes in sizes.items() if num_bytes < weights_bytes},
    )

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


def _tokenizer(checkpoint: Checkpoint) -> Tokenizer:
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


def _check_threads(threads: int | None) -> None:
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise InvalidOption(f"threads={threads!r} is impossible", hint="threads must be a whole number of at least 1")
