"""Probabilities in arrays: normalizing, safe logarithms, the most probable class."""

from __future__ import annotations

import numpy as np

from .arrays import Floats, Integers

TIE = 1e-12  # probabilities closer than this are equal

_SAFE = -700.0  # exp() of anything above this is not zero
_TINY = 1e-300
_LEVEL = 1e-10  # relative difference below which log probabilities are equal


def normalize(counts: Floats, axis: int = -1) -> Floats:
    """Divide by the sum along an axis; where that is zero, the result is uniform.

    >>> normalize(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    if counts.ndim == 2 and axis == -1:
        total = np.einsum("ik->i", counts)[:, None]  # several times faster than a sum
    else:
        total = counts.sum(axis=axis, keepdims=True)
    empty = total == 0
    if not empty.any():
        return counts / total
    return np.where(empty, 1 / counts.shape[axis], counts / np.where(empty, 1, total))


def safe_log(probabilities: Floats) -> Floats:
    """Return logarithms; zero counts as 1e-300."""
    return np.log(np.maximum(probabilities, _TINY))


def log_normalize(joint: Floats, allowed: Floats | float = 0.0) -> tuple[float, Floats]:
    """Return the log evidence of all items and their posteriors, which overwrite `joint`.

    Where nothing can underflow, the row maximum need not be subtracted first.
    """
    if isinstance(allowed, np.ndarray):
        joint += allowed
    shift = 0.0
    if joint.size and not joint.min() > _SAFE:
        highest = joint.max(axis=1, keepdims=True)
        joint -= highest
        shift = float(highest.sum())
    np.exp(joint, out=joint)
    total = np.einsum("ik->i", joint)
    joint *= (1 / total)[:, None]
    return float(np.log(total).sum()) + shift, joint


def harden(
    joint: Floats, allowed: Floats | float = 0.0, first: bool = False
) -> tuple[float, Floats]:
    """Return the log probability of the best classes and hard posteriors, which overwrite `joint`.

    Tied classes share the probability, or the first of them gets all of it.
    """
    if isinstance(allowed, np.ndarray):
        joint += allowed
    highest = joint.max(axis=1)
    level = highest - _LEVEL * np.maximum(1.0, np.abs(highest))
    leading = joint >= level[:, None]
    if first:
        leading &= leading.cumsum(axis=1) == 1
    n_tied = np.einsum("ik->i", leading.view(np.uint8), dtype=np.int64)
    np.divide(leading, n_tied[:, None], out=joint)
    return float(highest.sum()), joint


def most_probable(posterior: Floats) -> Integers:
    """Return the most probable class of every item; of tied classes, the first."""
    best = posterior.argmax(axis=1)
    top = posterior[np.arange(len(best)), best]
    return (posterior >= top[:, None] - TIE).argmax(axis=1)


def pick(probabilities: Floats, rng: np.random.Generator) -> Integers:
    """Return one class per row, as `rng.choice(n_classes, p=row)` would, row by row.

    >>> pick(np.array([[0.0, 1.0], [1.0, 0.0]]), np.random.default_rng(0)).tolist()
    [1, 0]
    """
    upto = probabilities.cumsum(axis=1)
    upto /= upto[:, -1:]
    level = rng.random(len(upto))
    label = np.zeros(len(upto), dtype=np.int64)
    for column in upto[:, :-1].T:
        label += column <= level
    return label
