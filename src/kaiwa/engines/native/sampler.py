"""The sampler of one answer, made of the options that a person gave."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kaiwa.engines.native._native import Sampler
from kaiwa.errors import InvalidOption
from kaiwa.sampling import Sampling


def make_sampler(sampling: Sampling, *, vocab_size: int, prompt_ids: Sequence[int]) -> Sampler:
    """A sampler that has drawn nothing yet. Raises `InvalidOption` for a bias of a token that the model lacks."""
    if unknown := [token_id for token_id in sampling.logit_bias if token_id >= vocab_size]:
        raise InvalidOption(
            f"logit_bias has the token {unknown[0]}", hint=f"the model knows the tokens 0 to {vocab_size - 1}"
        )
    sampler = Sampler(
        greedy=sampling.is_greedy,
        temperature=sampling.temperature,
        top_k=min(sampling.top_k, vocab_size),
        top_p=sampling.top_p,
        min_p=sampling.min_p,
        repetition_penalty=sampling.repetition_penalty,
        presence_penalty=sampling.presence_penalty,
        frequency_penalty=sampling.frequency_penalty,
        logit_bias=list(sampling.logit_bias.items()),
        seed=sampling.seed if sampling.seed is not None else int.from_bytes(os.urandom(8)) >> 1,
        vocab_size=vocab_size,
    )
    sampler.set_prompt(prompt_ids)
    return sampler
