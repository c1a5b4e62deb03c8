"""How far a recovered distribution p is from the shares q of the people who were asked.

Arrays are (item, class), rows sum to one; every measure gives one number per item.

    manhattan           Σ_k |p_k - q_k|: 0 to 2, twice the total variation
    jensen_shannon      H((p + q) / 2) - (H(p) + H(q)) / 2 in bits: 0 to 1
    kl                  Σ_k q_k log(q_k / p_k) in nats, with p of at least `LEAST`
    cross_entropy       -Σ_k q_k log p_k in nats, likewise
    squared             Σ_k (p_k - q_k)²
    unbiased_squared    squared - Σ_k q_k (1 - q_k) / (a - 1): with a votes per item, an unbiased
                        estimate of the squared distance to the law behind them; may be negative
    wasserstein         for ordered classes, steps of one: Σ over cuts |cumulated p - cumulated q|
    entropy             of one distribution, in bits

Few votes are noise: where the law is (.5, .5) and five people are asked, the law itself has an
expected Manhattan distance of .375 to their shares. So every score belongs beside that of people
asked again (`asked_again`), and squared distances are better freed of the noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._relation import Floats, Integers
from ..errors import DataError

__all__ = [
    "LEAST",
    "Reliability",
    "asked_again",
    "best",
    "cross_entropy",
    "entropy",
    "jensen_shannon",
    "kl",
    "manhattan",
    "perspectivist_error",
    "reliability",
    "shares_of",
    "squared",
    "unbiased_squared",
    "wasserstein",
]

LEAST = 1e-6  # the least probability where a logarithm is taken: votes contain zeros
_SAME = 1e-9  # probabilities that differ by less are a tie


def manhattan(p: Floats, q: Floats) -> Floats:
    """Return the sum of absolute differences.

    >>> manhattan(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]]))
    array([1.])
    """
    return np.abs(p - q).sum(axis=-1)


def entropy(p: Floats) -> Floats:
    """Return the entropy in bits."""
    safe = np.where(p > 0, p, 1.0)
    return -(safe * np.log2(safe)).sum(axis=-1) + 0.0


def jensen_shannon(p: Floats, q: Floats) -> Floats:
    """Return the Jensen-Shannon divergence in bits; its root is a metric.

    >>> jensen_shannon(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    array([1.])
    """
    return np.maximum(entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2, 0.0)


def kl(q: Floats, p: Floats, least: float = LEAST) -> Floats:
    """Return the Kullback-Leibler divergence of q from p in nats."""
    safe = np.where(q > 0, q, 1.0)
    return (q * (np.log(safe) - np.log(np.maximum(p, least)))).sum(axis=-1)


def cross_entropy(q: Floats, p: Floats, least: float = LEAST) -> Floats:
    """Return the cross-entropy of p under q in nats."""
    return -(q * np.log(np.maximum(p, least))).sum(axis=-1)


def squared(p: Floats, q: Floats) -> Floats:
    """Return the squared distance."""
    return ((p - q) ** 2).sum(axis=-1)


def unbiased_squared(p: Floats, votes: Floats) -> Floats:
    """Return the squared distance to the law behind the votes, NaN where fewer than two are.

    >>> unbiased_squared(np.array([[0.5, 0.5]]), np.array([[3, 1]]))  # 1/8 - (3/8) / 3
    array([0.])
    """
    count = votes.sum(axis=-1)
    q = shares_of(votes)
    noise = np.full(len(count), np.nan)
    np.divide((q * (1 - q)).sum(axis=-1), count - 1, out=noise, where=count > 1)
    return squared(p, q) - noise


def wasserstein(p: Floats, q: Floats) -> Floats:
    """Return the least way from p to q over classes that stand in order, one step apart."""
    return np.abs(np.cumsum(p - q, axis=-1)[..., :-1]).sum(axis=-1)


def shares_of(votes: ArrayLike) -> Floats:
    """Return the shares of votes: (item, class)."""
    votes = np.asarray(votes, dtype=np.float64)
    count = votes.sum(axis=-1, keepdims=True)
    if (count == 0).any():
        at = int(np.flatnonzero(count[:, 0] == 0)[0])
        raise DataError(f"item {at} has no votes; leave it out")
    return votes / count


def best(p: Floats) -> Floats:
    """Return the most probable class as a distribution; m equal ones have 1/m each."""
    tied = p >= p.max(axis=-1, keepdims=True) - _SAME
    return tied / tied.sum(axis=-1, keepdims=True)


def perspectivist_error(chosen: Floats, q: Floats, *, ordered: bool = False) -> Floats:
    """Return how far one label for all is from what everybody said, as a mean over people.

    Parameters
    ----------
    chosen
        The label for all, as a distribution: (item, class); `best(p)`, for instance.
    q
        Shares of the people: (item, class).
    ordered
        Count steps between ordered classes, the whole scale being 1; otherwise a label that
        differs counts 1.
    """
    if not ordered:
        return 1 - (chosen * q).sum(axis=-1)
    n_classes = q.shape[-1]
    step = np.abs(np.arange(n_classes)[:, None] - np.arange(n_classes)) / max(n_classes - 1, 1)
    return np.einsum("ik,kl,il->i", chosen, step, q)


class Reliability(NamedTuple):
    """What people say where a probability was predicted, in bins of the prediction."""

    predicted: Floats  # (bin): mean
    seen: Floats  # (bin): mean share of the people
    size: Integers  # (bin): how many pairs of item and class

    @property
    def error(self) -> float:
        """The mean distance of both, weighted by size."""
        some = self.size > 0
        gap = np.abs(self.predicted - self.seen)[some]
        return float(gap @ self.size[some] / max(self.size.sum(), 1))


def reliability(p: Floats, q: Floats, bins: int = 10) -> Reliability:
    """Return the mean share of the people in bins of equal width of the prediction."""
    position = bins_of(p, bins).reshape(-1)
    count = np.bincount(position, minlength=bins)
    some = np.maximum(count, 1)
    empty = np.where(count > 0, 0.0, np.nan)
    predicted = np.bincount(position, p.reshape(-1), bins) / some + empty
    seen = np.bincount(position, q.reshape(-1), bins) / some + empty
    return Reliability(predicted, seen, count)


def bins_of(p: Floats, bins: int) -> Integers:
    """Return the bin of every probability; a bin holds its upper end."""
    return np.clip(np.ceil(p * bins - 1e-9).astype(np.int64), 1, bins) - 1


def asked_again(votes: Floats, random: np.random.Generator) -> Floats:
    """Return votes as if as many people had been asked again, by the shares of the first."""
    votes = np.asarray(votes)
    return random.multinomial(votes.sum(axis=-1).astype(np.int64), shares_of(votes)).astype(float)
