"""A model, its memory and its answers, told in words and numbers."""

from __future__ import annotations

import time
from typing import Any

from kaiwa.chat.model import ModelCard
from kaiwa.events import Finished
from kaiwa.sampling import Sampling

GAUGE_WIDTH = 20
UNITS = ("kB", "MB", "GB", "TB")
KEPT = "what is written stays in the conversation (!continue goes on, !retry answers anew)"
STOPPED = f"stopped; {KEPT}"
STOPPED_EARLY = "stopped before the first word; the question waits at the prompt"


def in_bytes(count: int) -> str:
    """A size as people say it: "98 MB", "1.2 GB"."""
    if count < 1_000:
        return f"{count} bytes"
    size, units = count / 1_000, list(UNITS)
    while size >= 999.5 and len(units) > 1:
        size, units = size / 1_000, units[1:]
    return f"{size:.1f} {units[0]}" if size < 9.95 else f"{size:,.0f} {units[0]}"


def ago(moment: float) -> str:
    """How long ago it was, roughly: "3 hours ago"; `moment` in seconds since 1970."""
    seconds = max(time.time() - moment, 0)
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if count := int(seconds // size):
            return f"{count:,} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def in_parameters(count: int) -> str:
    """A number of parameters: "135 M", "1.1 B"."""
    return f"{count / 1e9:.1f} B" if count >= 999_500_000 else f"{count / 1e6:,.0f} M"


def kind(card: ModelCard) -> str:
    """What a model is: "llama, 135 M parameters, Q4_1"."""
    size = f"{in_parameters(card.num_parameters)} parameters" if card.num_parameters else ""
    return ", ".join(word for word in (card.family, size, card.number_format) if word)


def memory(card: ModelCard) -> str:
    """What a model costs: "98 MB weights + 94 MB cache when the context is full"."""
    parts = [f"{in_bytes(card.weights_bytes)} weights"] if card.weights_bytes else []
    if card.cache_bytes:
        parts.append(f"{in_bytes(card.cache_bytes)} cache when the context is full")
    return " + ".join(parts) or "not known"


def gauge(used: int, total: int) -> str:
    """How much of the context is taken: "████░░░░  412 of 2,048 tokens (20 %)"."""
    share = min(1.0, used / total) if total else 0.0
    filled = round(share * GAUGE_WIDTH)
    bar = "█" * filled + "░" * (GAUGE_WIDTH - filled)
    return f"{bar}  {used:,} of {total:,} tokens ({share:.0%})".replace("%)", " %)")


def option(name: str, value: Any) -> str:
    """An option as a person types it: `temperature=0.2`."""
    return f"{name}={list(value) if isinstance(value, tuple) else value!r}"


def changed_options(sampling: Sampling, defaults: Sampling) -> str:
    """The options that differ from the model's own, with those beside them."""
    before = defaults.to_dict()
    changed = [(name, value) for name, value in sampling.to_dict().items() if value != before[name]]
    return ", ".join(f"{option(name, value)} (model: {before[name]!r})" for name, value in changed)


def own_options(defaults: Sampling) -> str:
    """The options that the model asks for itself."""
    plain = Sampling().to_dict()
    own = [option(name, value) for name, value in defaults.to_dict().items() if value != plain[name]]
    return ", ".join(own) or "none"


def tokens(finished: Finished) -> str:
    """What an answer took: "34 tokens, 12 read, 410 cached"."""
    usage = finished.usage
    count = "1 token" if usage.generated_tokens == 1 else f"{usage.generated_tokens:,} tokens"
    return f"{count}, {usage.prompt_tokens - usage.cached_tokens:,} read, {usage.cached_tokens:,} cached"


def speeds(finished: Finished) -> str:
    """How fast an answer was; what could not be measured is left out."""
    timings = finished.timings
    parts = [f"first token {timings.first_token_s:.2f} s"]
    if timings.decode_tokens_per_s:
        parts.insert(0, f"{timings.decode_tokens_per_s:,.0f} tokens/s")
    if timings.prompt_tokens_per_s:
        parts.append(f"prompt {timings.prompt_tokens_per_s:,.0f} tokens/s")
    return ", ".join(parts)


def after_answer(finished: Finished) -> str:
    """The quiet line below an answer."""
    speed = finished.timings.decode_tokens_per_s
    parts = [tokens(finished)] + ([f"{speed:,.0f} tokens/s"] if speed else [])
    return " · ".join(parts)


def why_it_ended(finished: Finished, sampling: Sampling, context_length: int) -> str:
    """One sentence with advice where an answer is not whole; else nothing."""
    if finished.finish_reason == "cancelled":
        return STOPPED
    if finished.finish_reason != "length":
        return ""
    limit = sampling.max_new_tokens
    if limit is not None and finished.usage.generated_tokens >= limit:
        return f"cut off at max_new_tokens={limit}; !continue goes on, !set max_new_tokens={limit * 4} allows more"
    return f"cut off: the context of {context_length:,} tokens is full; !undo or !clear makes room"
