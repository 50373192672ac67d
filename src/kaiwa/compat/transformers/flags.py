"""Generation flags by their names in transformers, made into options of Kaiwa's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiwa.errors import InvalidOption, did_you_mean
from kaiwa.sampling import OPTIONS

DEFAULT_MAX_NEW_TOKENS = 256
"""What transformers' pipeline takes where neither model nor person says; its `generate` would stop after 20."""
DEFAULT_TOP_K = 50

_OWN = {option.name for option in OPTIONS}
_RENAMED = {"stop_strings": "stop", "stop_sequence": "stop"}
# Flags of transformers that Kaiwa has no equal of, with the values that change nothing there; None never does.
_WITHOUT_EFFECT: dict[str, tuple[Any, ...]] = {
    "num_beams": (1,),
    "num_beam_groups": (1,),
    "diversity_penalty": (0.0,),
    "length_penalty": (1.0,),
    "early_stopping": (False,),
    "typical_p": (1.0,),
    "top_h": (),
    "epsilon_cutoff": (0.0,),
    "eta_cutoff": (0.0,),
    "penalty_alpha": (),
    "dola_layers": (),
    "no_repeat_ngram_size": (0,),
    "encoder_no_repeat_ngram_size": (0,),
    "encoder_repetition_penalty": (1.0,),
    "bad_words_ids": (),
    "force_words_ids": (),
    "constraints": (),
    "renormalize_logits": (False, True),  # draws are always from probabilities that add up to one
    "forced_bos_token_id": (),
    "forced_eos_token_id": (),
    "remove_invalid_values": (False,),
    "exponential_decay_length_penalty": (),
    "begin_suppress_tokens": (),
    "sequence_bias": (),
    "token_healing": (False,),
    "guidance_scale": (1.0,),
    "watermarking_config": (),
    "min_length": (0,),
    "min_new_tokens": (0,),
    "max_time": (),
    "use_cache": (True,),
    "cache_implementation": ("dynamic",),
    "cache_config": (),
    "max_cache_len": (),
    "prefill_chunk_size": (),
    "past_key_values": (),
    "return_dict_in_generate": (False,),
    "output_scores": (False,),
    "output_logits": (False,),
    "output_attentions": (False,),
    "output_hidden_states": (False,),
    "logits_processor": (),
    "stopping_criteria": (),
    "prefix_allowed_tokens_fn": (),
    "negative_prompt_ids": (),
    "compile_config": (),
    "disable_compile": (True,),
    "custom_generate": (),
    "synced_gpus": (False,),
    "low_memory": (),
    "bos_token_id": (),
    "decoder_start_token_id": (),
}
# Flags that change how fast an answer comes, and not the answer: Kaiwa measures what pays, whatever they say.
_OF_SPEED: dict[str, tuple[type, ...]] = {
    "prompt_lookup_num_tokens": (int,),
    "max_matching_ngram_size": (int,),
    "num_assistant_tokens": (int,),
    "num_assistant_tokens_schedule": (str,),
    "assistant_confidence_threshold": (int, float),
    "assistant_lookbehind": (int,),
    "target_lookbehind": (int,),
}
_INSTEAD = {
    "past_key_values": "Kaiwa keeps what it has read itself, and checks that it fits the prompt",
    "min_new_tokens": "leave it out, and ask for a longer answer in the prompt",
    "max_time": "use max_new_tokens, or close the stream when the time is over",
    "num_beams": "leave it out, or draw several answers with num_return_sequences",
    "logits_processor": "logit_bias raises or lowers tokens",
    "stopping_criteria": "use stop_strings",
    "return_dict_in_generate": "kw.LLM.stream(num_logprobs=…) tells probabilities",
    "output_scores": "kw.LLM.stream(num_logprobs=…) tells probabilities",
}


@dataclass(frozen=True, slots=True)
class Flags:
    """What a call asks for: `options` of sampling, and what goes beyond them."""

    options: dict[str, Any]
    num_return_sequences: int = 1
    max_length: int | None = None
    """Prompt and answer together, in tokens; None where `max_new_tokens` is given, or nothing."""
    eos_token_id: tuple[int, ...] | None = None
    pad_token_id: int | None = None


def read(flags: Mapping[str, Any], *, also: frozenset[str] = frozenset()) -> Flags:
    """The flags of a call, checked. `also` are further names that the caller knows, for the hint of an error.

    Raises `InvalidOption` for a name that neither transformers nor Kaiwa has, with the nearest; for a flag that would
    have no effect here; and for an impossible value.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    for name, value in given.items():
        _check(name, value, also)
    options = {_RENAMED.get(name, name): value for name, value in given.items() if _is_option(name)}
    if suppressed := given.get("suppress_tokens"):
        options["logit_bias"] = {**options.get("logit_bias", {}), **dict.fromkeys(suppressed, -100.0)}
    if options.get("temperature") == 0:
        options["do_sample"] = False
    max_length = None if "max_new_tokens" in given else given.get("max_length")
    return Flags(
        options,
        num_return_sequences=_count("num_return_sequences", given.get("num_return_sequences", 1)),
        max_length=None if max_length is None else _count("max_length", max_length),
        eos_token_id=_ids(given.get("eos_token_id")),
        pad_token_id=given.get("pad_token_id"),
    )


def completed(options: Mapping[str, Any], defaults: Any) -> dict[str, Any]:
    """The options with those that transformers has where neither a call nor the model (`defaults`) says anything."""
    filled = dict(options)
    if defaults.max_new_tokens is None:
        filled.setdefault("max_new_tokens", DEFAULT_MAX_NEW_TOKENS)
    if defaults.top_k == 0:
        filled.setdefault("top_k", DEFAULT_TOP_K)
    return filled


_BEYOND = frozenset(("num_return_sequences", "max_length", "eos_token_id", "pad_token_id", "suppress_tokens"))


def _is_option(name: str) -> bool:
    return name in _OWN or name in _RENAMED


def _check(name: str, value: Any, also: frozenset[str]) -> None:
    if _is_option(name) or name in _BEYOND:
        return
    if name in _OF_SPEED:
        if not isinstance(value, _OF_SPEED[name]):
            raise InvalidOption(f"{name}={value!r} is impossible", hint=f"leave {name} out: Kaiwa measures what pays")
        return
    if name not in _WITHOUT_EFFECT:
        known = {*_OWN, *_RENAMED, *_BEYOND, *_WITHOUT_EFFECT, *_OF_SPEED, *also}
        raise InvalidOption(f"there is no generation flag {name!r}", hint=did_you_mean(name, known))
    if not any(value is harmless or value == harmless for harmless in _WITHOUT_EFFECT[name]):
        raise InvalidOption(
            f"{name}={value!r} would have no effect: Kaiwa has nothing like it",
            hint=_INSTEAD.get(name, f"leave {name} out"),
        )


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidOption(f"{name}={value!r} is impossible", hint=f"{name} must be a whole number of at least 1")
    return value


def _ids(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    ids = value if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(token_id, int) and not isinstance(token_id, bool) for token_id in ids):
        raise InvalidOption(f"eos_token_id={value!r} is impossible", hint="it is a token id, or a list of them")
    return tuple(ids)


def room(max_length: int, prompt_tokens: int) -> int:
    """How long an answer may be. Raises `InvalidOption` where the prompt leaves it no place."""
    if max_length <= prompt_tokens:
        raise InvalidOption(
            f"max_length={max_length:,} is prompt and answer together, and the prompt has {prompt_tokens:,} tokens",
            hint="use max_new_tokens, which is the answer alone",
        )
    return max_length - prompt_tokens
