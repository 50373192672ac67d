"""What quantizing costs: a model's predictions on a text of ours, beside those of its unquantized weights."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from kaiwa.engines.engine import Engine
from kaiwa.errors import InvalidOption
from kaiwa.runtime.loading.loader import DEFAULT_MODEL, load
from kaiwa.runtime.loading.parts import EngineOptions, Parts

TEXT = Path(__file__).with_name("quality_text.txt")
"""Prose, dialogue, lists, letters and code."""
WINDOW = 256
"""Tokens that are read together; each window begins anew."""

Model = str | os.PathLike[str]
Row = tuple[float, float, float, bool]
"""For one token: KL divergence, both models' losses, and whether their first choices are the same."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How one model does on the text. KL divergences from the reference in nats per token, both 0 for itself."""

    name: str
    number_format: str
    weights_bytes: int
    perplexity: float
    mean_kl: float = 0.0
    max_kl: float = 0.0
    same_top: float = 1.0
    """The share of tokens where the most probable next one is the reference's too."""


@dataclass(frozen=True, slots=True)
class QualityReport:
    """What `compare` found."""

    num_tokens: int
    reference: Quality
    compared: tuple[Quality, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything by name, for JSON."""
        return dataclasses.asdict(self)


def compare(
    model: Model = DEFAULT_MODEL,
    *,
    quantization: str | None = None,
    reference: Model | None = None,
    threads: int | None = None,
    on_run: Callable[[int, int], None] = lambda done, total: None,
) -> QualityReport:
    """Compare `model` with `reference`, its unquantized weights.

    Without a `reference` the model's own weights are that, and compared is what `quantization` makes of them: without
    a name, everything that it can. `on_run` is told how many of how many windows of text are read.

    Raises what `LLM` raises, and `InvalidOption` for a model that is quantized already where no `reference` is given,
    or a `reference` that is another model.
    """
    from kaiwa.weights.quantize import RECIPES, find_recipe

    if quantization is not None:
        find_recipe(quantization)
    if reference is None:
        _check_unquantized(model)
    recipes: list[str | None] = [quantization]
    if quantization is None and reference is None:
        recipes = list(RECIPES)
    text = TEXT.read_text(encoding="utf-8")
    with _loaded(model if reference is None else reference, None, threads) as exact:
        token_ids = exact.tokenizer.encode(text)
        windows = [token_ids[start : start + WINDOW] for start in range(0, len(token_ids) - 1, WINDOW)]
        compared: list[Quality] = []
        perplexity = math.nan
        num_runs = len(recipes) * len(windows)
        for recipe in recipes:
            num_before = len(compared) * len(windows)
            with _loaded(model, recipe, threads) as other:
                if other.tokenizer.encode(text) != token_ids:
                    raise InvalidOption(
                        f"{exact.name} reads a text as other tokens than {other.name}",
                        hint="the reference must be the same model",
                    )
                rows: list[Row] = []
                for number, window in enumerate(windows, 1):
                    rows += _diverge(exact.engine, other.engine, window)
                    on_run(num_before + number, num_runs)
                quality, perplexity = _summary(other, other.name if recipe is None else recipe, rows)
            compared.append(quality)
        info = exact.engine.info
        best = Quality(exact.name, info.number_format, info.weights_bytes, perplexity)
        return QualityReport(len(token_ids), best, tuple(compared))


def _diverge(exact: Engine, other: Engine, window: list[int]) -> list[Row]:
    from kaiwa.engines.native import _native, threads

    targets = window[1:]
    expected, actual = (engine.score(window)[: len(targets)] for engine in (exact, other))
    return _native.divergence(expected, actual, targets, _native.ThreadPool(threads.choose()))


def _summary(other: Parts, name: str, rows: list[Row]) -> tuple[Quality, float]:
    """The other's quality, and the exact one's perplexity."""
    divergences, exact_losses, losses, agreements = zip(*rows, strict=True)
    quality = Quality(
        name=name,
        number_format=other.engine.info.number_format,
        weights_bytes=other.engine.info.weights_bytes,
        perplexity=math.exp(fmean(losses)),
        mean_kl=fmean(divergences),
        max_kl=max(divergences),
        same_top=fmean(agreements),
    )
    return quality, math.exp(fmean(exact_losses))


@contextmanager
def _loaded(model: Model, quantization: str | None, threads: int | None) -> Iterator[Parts]:
    options = EngineOptions(threads=threads, context_length=WINDOW, quantization=quantization)
    parts = load(model, options, engine="native", on_progress=None)
    try:
        yield parts
    finally:
        parts.engine.shutdown()


def _check_unquantized(model: Model) -> None:
    from kaiwa.weights.hub import resolve
    from kaiwa.weights.open import open_checkpoint
    from kaiwa.weights.quantize import quantized_format

    checkpoint = open_checkpoint(resolve(model))
    format = quantized_format(checkpoint)
    checkpoint.close()
    if format is not None:
        raise InvalidOption(
            f"{model} is quantized already ({format}); what that cost can only be told beside its unquantized weights",
            hint="pass their path as reference",
        )
