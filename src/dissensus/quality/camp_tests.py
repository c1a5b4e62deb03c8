"""Crowds without camps, drawn from a model of severity, for comparison.

    P(label of j on i is k) ∝ T[i, k]^alpha[j] exp(beta[j, k])

T is how an item divides the crowd: its shares of labels, drawn from their Dirichlet posterior.
`alpha` is how closely an annotator follows it, `beta` how readily they choose a class. Both are
fitted to the posterior mean without the annotator's own label.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..base.probability import normalize
from ..base.arrays import Array, Floats, Integers

_ROUNDS = 25
_RIDGE = 4.0  # of alpha, towards 1
_PRIOR = 1.0  # labels that the shares of all items add to every item
_PSEUDO = 0.5  # labels added to every annotator's, as the crowd gives them


class OneCamp(NamedTuple):
    """A fitted crowd without camps."""

    item: Integers  # (label)
    annotator: Integers  # (label)
    votes: Floats  # (item, class), with the prior
    alpha: Floats  # (annotator)
    beta: Floats  # (annotator, class)

    def draw(self, rng: np.random.Generator, apart: float = 0.0) -> Array:
        """Return new labels of everybody.

        Where `apart` is above zero, two camps of equal size judge this share of the items
        independently of each other.
        """
        log_share = _draw_log_shares(rng, self.votes)
        seen = log_share[self.item]
        if apart > 0:
            other = np.arange(len(self.votes))
            moved = np.flatnonzero(rng.random(len(other)) < apart)
            other[moved] = rng.permutation(moved)
            camp = rng.permutation(len(self.alpha)) % 2 == 1
            seen = np.where(camp[self.annotator][:, None], log_share[other[self.item]], seen)
        score = self.alpha[self.annotator][:, None] * seen + self.beta[self.annotator]
        return (score + rng.gumbel(size=score.shape)).argmax(axis=1)


def fit_one_camp(
    item: Integers, annotator: Integers, label: Integers, shape: tuple[int, int, int]
) -> OneCamp:
    """Return the model of one camp; `shape` counts items, annotators and classes."""
    n_items, n_annotators, n_classes = shape
    given = np.equal.outer(label, np.arange(n_classes)).astype(np.float64)
    counted = np.bincount(item * n_classes + label, minlength=n_items * n_classes)
    share = normalize(given.sum(axis=0) + 0.5)
    votes = counted.reshape(n_items, n_classes) + _PRIOR * share
    log_share = np.log(normalize(votes[item] - given))  # (label, class), without this label

    def by_annotator(value: Floats) -> Floats:
        columns = value.T if value.ndim > 1 else value[None]
        return np.stack([np.bincount(annotator, one, n_annotators) for one in columns], axis=1)

    counts = by_annotator(given) + _PSEUDO * share
    followed = by_annotator((given * log_share).sum(axis=1))[:, 0]
    alpha, beta = np.ones(n_annotators), np.zeros((n_annotators, n_classes))
    for _ in range(_ROUNDS):
        for step in ("beta", "alpha"):
            score = alpha[annotator][:, None] * log_share + beta[annotator]
            chosen = np.exp(score - score.max(axis=1, keepdims=True))
            chosen /= chosen.sum(axis=1, keepdims=True)
            if step == "beta":
                beta += np.log(counts / (by_annotator(chosen) + _PSEUDO * share))
            else:
                mean = (chosen * log_share).sum(axis=1)
                variance = (chosen * log_share**2).sum(axis=1) - mean**2
                slope = followed - by_annotator(mean)[:, 0] - _RIDGE * (alpha - 1)
                alpha += np.clip(slope / (by_annotator(variance)[:, 0] + _RIDGE), -0.5, 0.5)
                alpha = np.clip(alpha, 0.0, 10.0)
    return OneCamp(item, annotator, votes, alpha, beta)


def _draw_log_shares(rng: np.random.Generator, votes: Floats) -> Floats:
    """Return the logarithms of shares from their Dirichlet posterior: (item, class)."""
    # A gamma variable with a small shape underflows; its logarithm does not (Marsaglia & Tsang).
    log_gamma = np.log(rng.standard_gamma(votes + 1)) + np.log(rng.random(votes.shape)) / votes
    log_gamma -= np.logaddexp.reduce(log_gamma, axis=1, keepdims=True)
    return log_gamma
