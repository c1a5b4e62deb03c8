"""Distances between a recovered distribution p and the label shares q of the annotators.

Arrays are (item, class), rows sum to one; every measure gives one number per item.

    manhattan           Σ_k |p_k - q_k|: 0 to 2, twice the total variation
    jensen_shannon      H((p + q) / 2) - (H(p) + H(q)) / 2 in bits: 0 to 1
    kl                  Σ_k q_k log(q_k / p_k) in nats, with p of at least `LEAST`
    cross_entropy       -Σ_k q_k log p_k in nats, likewise
    squared             Σ_k (p_k - q_k)²
    unbiased_squared    squared - Σ_k q_k (1 - q_k) / (a - 1): with a votes per item, an unbiased
                        estimate of the squared distance to the true distribution; may be negative
    wasserstein         for ordered classes, unit steps: Σ over cuts |cumulative p - cumulative q|
    expected_distance   Σ_kl p_k q_l d(k, l), d the distances between classes
    energy_distance     expected_distance less half of that of p to itself and of q to itself
    entropy             of one distribution, in bits

Few votes are noisy: with a true distribution of (.5, .5) and five votes, the true distribution
itself has an expected Manhattan distance of .375 to the shares. So compare every score with that of
people asked again (`resample_votes`), and prefer unbiased squared distances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...base.arrays import Floats, Integers
from ...errors import DataError

LEAST = 1e-6  # lower bound of probabilities in logarithms: votes contain zeros
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
    """Return the squared distance to the distribution behind the votes, NaN below two votes.

    >>> unbiased_squared(np.array([[0.5, 0.5]]), np.array([[3, 1]]))  # 1/8 - (3/8) / 3
    array([0.])
    """
    count = votes.sum(axis=-1)
    q = shares_of(votes)
    noise = np.full(len(count), np.nan)
    np.divide((q * (1 - q)).sum(axis=-1), count - 1, out=noise, where=count > 1)
    return squared(p, q) - noise


def wasserstein(p: Floats, q: Floats) -> Floats:
    """Return the Wasserstein distance of ordered classes, one step apart."""
    return np.abs(np.cumsum(p - q, axis=-1)[..., :-1]).sum(axis=-1)


def expected_distance(p: Floats, q: Floats, distance: Floats) -> Floats:
    """Return the expected distance of a class drawn from p to one drawn from q.

    It is least for a p that is certain of one class.

    >>> steps = np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> expected_distance(np.array([[1.0, 0, 0]]), np.array([[0, 0.5, 0.5]]), steps)
    array([1.5])
    """
    return np.einsum("...k,kl,...l->...", p, distance, q)


def energy_distance(p: Floats, q: Floats, distance: Floats) -> Floats:
    """Return the energy distance, 0 where p = q: a proper score for linear and circle distances."""
    within = expected_distance(p, p, distance) + expected_distance(q, q, distance)
    return expected_distance(p, q, distance) - within / 2


def shares_of(votes: ArrayLike) -> Floats:
    """Return the shares of votes: (item, class)."""
    votes = np.asarray(votes, dtype=np.float64)
    count = votes.sum(axis=-1, keepdims=True)
    if (count == 0).any():
        item = int(np.flatnonzero(count[:, 0] == 0)[0])
        raise DataError(f"item {item} has no votes; leave it out")
    return votes / count


def most_probable(p: Floats) -> Floats:
    """Return the most probable class as a distribution; m tied classes have 1/m each."""
    tied = p >= p.max(axis=-1, keepdims=True) - _SAME
    return tied / tied.sum(axis=-1, keepdims=True)


def perspectivist_error(chosen: Floats, q: Floats, *, distance: Floats | None = None) -> Floats:
    """Return the error of one label against the labels of all annotators, averaged over these.

    Parameters
    ----------
    chosen
        The label as a distribution: (item, class); `most_probable(p)`, for instance.
    q
        Label shares of the annotators: (item, class).
    distance
        Distances between classes: (class, class). By default any other label counts 1.
    """
    if distance is None:
        return 1 - (chosen * q).sum(axis=-1)
    return expected_distance(chosen, q, distance)


class Reliability(NamedTuple):
    """Predicted probabilities against observed label shares, in bins of the prediction."""

    predicted: Floats  # (bin): mean
    observed: Floats  # (bin): mean label share
    size: Integers  # (bin): number of pairs of item and class

    @property
    def error(self) -> float:
        """The mean absolute difference, weighted by size."""
        some = self.size > 0
        gap = np.abs(self.predicted - self.observed)[some]
        return float(gap @ self.size[some] / max(self.size.sum(), 1))


def reliability(p: Floats, q: Floats, bins: int = 10) -> Reliability:
    """Return mean label shares in equal-width bins of the prediction."""
    bin_ = bins_of(p, bins).reshape(-1)
    count = np.bincount(bin_, minlength=bins)
    some = np.maximum(count, 1)
    empty = np.where(count > 0, 0.0, np.nan)
    predicted = np.bincount(bin_, p.reshape(-1), bins) / some + empty
    observed = np.bincount(bin_, q.reshape(-1), bins) / some + empty
    return Reliability(predicted, observed, count)


def bins_of(p: Floats, bins: int) -> Integers:
    """Return the bin of every probability; bins include their upper end."""
    return np.clip(np.ceil(p * bins - 1e-9).astype(np.int64), 1, bins) - 1


def resample_votes(votes: Floats, random: np.random.Generator) -> Floats:
    """Return as many votes again, drawn from the shares: a parametric bootstrap."""
    votes = np.asarray(votes)
    return random.multinomial(votes.sum(axis=-1).astype(np.int64), shares_of(votes)).astype(float)
