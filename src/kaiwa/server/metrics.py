"""What is counted and measured, in Prometheus' text format."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

MEDIA_TYPE = "text/plain; version=0.0.4"
FIRST_TOKEN_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
BETWEEN_TOKENS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Counter:
    """A number that only grows, for every combination of its labels."""

    def __init__(self, name: str, help_: str, *labels: str) -> None:
        self._name = name
        self._help = help_
        self._labels = labels
        self._values: dict[tuple[str, ...], float] = {}

    def add(self, amount: float, *labels: str) -> None:
        """Count `amount` more."""
        self._values[labels] = self._values.get(labels, 0) + amount

    def lines(self) -> Iterator[str]:
        """The counter in the text format."""
        yield from _head(self._name, self._help, "counter")
        for labels, value in self._values.items():
            yield _line(self._name, dict(zip(self._labels, labels, strict=True)), value)


class Histogram:
    """How often a duration was below each of some bounds, for every model."""

    def __init__(self, name: str, help_: str, bounds_s: Sequence[float]) -> None:
        self._name = name
        self._help = help_
        self._bounds_s = bounds_s
        self._counts: dict[str, list[int]] = {}
        self._sums_s: dict[str, float] = {}

    def observe(self, duration_s: float, model: str, *, times: int = 1) -> None:
        """Count a duration so many times."""
        counts = self._counts.get(model)
        if counts is None:
            counts = self._counts[model] = [0] * (len(self._bounds_s) + 1)
            self._sums_s[model] = 0.0
        counts[bisect.bisect_left(self._bounds_s, duration_s)] += times
        self._sums_s[model] += duration_s * times

    def lines(self) -> Iterator[str]:
        """The histogram in the text format."""
        yield from _head(self._name, self._help, "histogram")
        bounds = [*map(str, self._bounds_s), "+Inf"]
        for model, counts in self._counts.items():
            for bound, count in zip(bounds, accumulate(counts), strict=True):
                yield _line(f"{self._name}_bucket", {"model": model, "le": bound}, count)
            yield _line(f"{self._name}_sum", {"model": model}, self._sums_s[model])
            yield _line(f"{self._name}_count", {"model": model}, sum(counts))


def gauge_lines(name: str, help_: str, values: Sequence[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    """A number that goes up and down, as it is now, in the text format."""
    yield from _head(name, help_, "gauge")
    for labels, value in values:
        yield _line(name, labels, value)


class Metrics:
    """What a server counts."""

    def __init__(self) -> None:
        self.requests = Counter("kaiwa_requests_total", "HTTP requests by route and status.", "route", "status")
        self.answers = Counter("kaiwa_answers_total", "Answers by how they ended.", "model", "finish_reason")
        self.prompt_tokens = Counter("kaiwa_prompt_tokens_total", "Tokens of prompts, cached ones included.", "model")
        self.cached_tokens = Counter("kaiwa_cached_tokens_total", "Tokens of prompts not read again.", "model")
        self.generated_tokens = Counter("kaiwa_generated_tokens_total", "Tokens that were written.", "model")
        self.first_token = Histogram(
            "kaiwa_time_to_first_token_seconds", "From the request to the first piece of its answer.", FIRST_TOKEN_S
        )
        self.between_tokens = Histogram(
            "kaiwa_inter_token_seconds", "From one piece of an answer to the next.", BETWEEN_TOKENS_S
        )

    def lines(self) -> Iterator[str]:
        """All of it in the text format."""
        for metric in (
            self.requests,
            self.answers,
            self.prompt_tokens,
            self.cached_tokens,
            self.generated_tokens,
            self.first_token,
            self.between_tokens,
        ):
            yield from metric.lines()


def _head(name: str, help_: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {help_}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    inner = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{inner}}} {value}" if inner else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
