"""How far two models' next-token distributions lie apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NUM_KEPT = 64


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Log-probabilities along the last axis, in float64."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def kl_divergence(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """KL(expected || actual) of log-probabilities, in nats, along the last axis."""
    return (np.exp(expected) * (expected - actual)).sum(axis=-1)


@dataclass(frozen=True, slots=True)
class CoarseDistributions:
    """The most probable tokens of every position, and the log-probability of all others together.

    Small enough to keep in a file. The KL divergence between two of these is never above that of the whole.
    """

    token_ids: np.ndarray
    """uint16, shape (positions, NUM_KEPT), the most probable first."""
    log_probs: np.ndarray
    """float32, the same shape."""

    @classmethod
    def of(cls, log_probs: np.ndarray) -> CoarseDistributions:
        """Keep the most probable tokens of whole distributions: (positions, vocab_size)."""
        token_ids = np.argsort(-log_probs, axis=-1, kind="stable")[:, :NUM_KEPT]
        kept = np.take_along_axis(log_probs, token_ids, axis=-1)
        return cls(token_ids.astype(np.uint16), kept.astype(np.float32))

    def kl_to(self, log_probs: np.ndarray) -> np.ndarray:
        """KL divergence to whole distributions, over the kept tokens and the rest as one."""
        theirs = np.take_along_axis(log_probs, self.token_ids.astype(np.int64), axis=-1)
        return kl_divergence(_with_rest(self.log_probs.astype(np.float64)), _with_rest(theirs))


def _with_rest(log_probs: np.ndarray) -> np.ndarray:
    rest = np.log(np.clip(1 - np.exp(log_probs).sum(axis=-1, keepdims=True), 1e-9, None))
    return np.concatenate([log_probs, rest], axis=-1)
