"""Ordered probit: latent positions, cuts that divide them into classes, annotators with noise.

The steps are Fisher scoring: gradient of the log posterior over the expected curvature. A step is
halved until it gains, or not taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import expit, ndtr

from ..base.arrays import Floats

_CELLS = 2**16  # floats in the arrays of one block of annotators
_LEAST = 1e-300
_HALVINGS = 12


def cuts_of(middle: Floats, gap: Floats) -> Floats:
    """Return cuts from their mean and, through softplus, the gaps between them.

    >>> cuts_of(np.array([1.0]), np.log(np.expm1([2.0]))).tolist()
    [0.0, 2.0]
    """
    upto = np.concatenate([[0.0], np.logaddexp(0, gap).cumsum()])
    return middle + upto - upto.mean()


def offsets(cuts: Floats, grid: Floats, bias: Floats, scale: Floats) -> Floats:
    """Return cuts minus positions, in units of the noise: (annotator, threshold, node)."""
    return (cuts[:, None] - grid - bias[:, None, None]) * scale[:, None, None]


def density(off: Floats) -> Floats:
    """Return the standard normal density."""
    return np.exp(off * off * -0.5) / np.sqrt(2 * np.pi)


def label_probabilities(off: Floats) -> Floats:
    """Return P(label | position): (annotator, given class, node).

    Small probabilities are differences of small numbers, in either tail.
    """
    n_annotators, n_cuts, n_nodes = off.shape
    probability = np.ones((n_annotators, n_cuts + 1, n_nodes))
    if n_cuts == 0:
        return probability
    high, tail = off > 0, ndtr(-np.abs(off))
    below, above = np.where(high, 1 - tail, tail), np.where(high, tail, 1 - tail)
    probability[:, 0], probability[:, -1] = below[:, 0], above[:, -1]
    probability[:, 1:-1] = np.where(
        high[:, :-1], above[:, :-1] - above[:, 1:], below[:, 1:] - below[:, :-1]
    )
    return np.maximum(probability, _LEAST, out=probability)


def _steps(values: Floats) -> Floats:
    """Return the difference of values between the ends of every class, 0 at the outer ends."""
    out = np.zeros((values.shape[0], values.shape[1] + 1, values.shape[2]))
    out[:, :-1] = values
    out[:, 1:] -= values
    return out


def update_annotators(
    given: Floats,  # (annotator, given class, node)
    cuts: Floats,
    grid: Floats,
    bias: Floats,
    log_precision: Floats,
) -> tuple[Floats, Floats]:
    """Return better biases and log precisions; both have standard normal priors."""
    scale = np.exp(log_precision / 2)
    off = offsets(cuts, grid, bias, scale)
    probability, density_ = label_probabilities(off), density(off)
    by_bias = _steps(density_ * -scale[:, None, None])
    by_precision = _steps(off * density_ / 2)
    ratio, weight = given / probability, given.sum(axis=1, keepdims=True) / probability
    gradient_b = np.einsum("agn,agn->a", ratio, by_bias) - bias
    gradient_p = np.einsum("agn,agn->a", ratio, by_precision) - log_precision
    curvature_b = np.einsum("agn,agn,agn->a", weight, by_bias, by_bias) + 1
    curvature_p = np.einsum("agn,agn,agn->a", weight, by_precision, by_precision) + 1
    both = np.einsum("agn,agn,agn->a", weight, by_bias, by_precision)
    total = curvature_b * curvature_p - both**2
    step_b = (curvature_p * gradient_b - both * gradient_p) / total
    step_p = (curvature_b * gradient_p - both * gradient_b) / total

    before = _objective(given, probability, bias, log_precision)
    worse = np.arange(len(bias))
    for _ in range(_HALVINGS):
        there = (bias + step_b)[worse], (log_precision + step_p)[worse]
        probability = label_probabilities(offsets(cuts, grid, there[0], np.exp(there[1] / 2)))
        worse = worse[~(_objective(given[worse], probability, *there) >= before[worse])]
        if len(worse) == 0:
            break
        step_b[worse] /= 2
        step_p[worse] /= 2
    step_b[worse] = step_p[worse] = 0.0
    return bias + step_b, log_precision + step_p


def _objective(given: Floats, probability: Floats, bias: Floats, log_precision: Floats) -> Floats:
    return np.einsum("agn,agn->a", given, np.log(probability)) - (bias**2 + log_precision**2) / 2


def update_cuts(
    given: Floats,  # (annotator, given class, node)
    middle: Floats,
    gap: Floats,
    grid: Floats,
    bias: Floats,
    scale: Floats,
) -> tuple[Floats, Floats]:
    """Return better cuts, as middle and gaps; both have standard normal priors."""
    if len(middle) == 0:
        return middle, gap
    cuts = cuts_of(middle, gap)
    gradient, curvature = np.zeros(len(cuts)), np.zeros((len(cuts), len(cuts)))
    every, behind = np.arange(len(cuts)), np.arange(len(cuts) - 1)
    before = -0.5 * float(middle @ middle + gap @ gap)
    for block in blocks(given):
        off = offsets(cuts, grid, bias[block], scale[block])
        probability, density_ = label_probabilities(off), density(off) * scale[block][:, None, None]
        before += float(np.einsum("agn,agn->", given[block], np.log(probability)))
        ratio, weight = (
            given[block] / probability,
            given[block].sum(axis=1, keepdims=True) / probability,
        )
        gradient += np.einsum("acn,acn->c", density_, ratio[:, :-1] - ratio[:, 1:])
        curvature[every, every] += np.einsum(
            "acn,acn->c", density_**2, weight[:, :-1] + weight[:, 1:]
        )
        near = np.einsum("acn,acn->c", density_[:, :-1] * density_[:, 1:], weight[:, 1:-1])
        curvature[behind, behind + 1] -= near
        curvature[behind + 1, behind] -= near
    moved = (every[:, None] > behind) * expit(gap)  # (cut, gap)
    jacobian = np.concatenate([np.ones((len(cuts), 1)), moved - moved.mean(axis=0)], axis=1)
    here = np.concatenate([middle, gap])
    step = np.linalg.solve(
        jacobian.T @ curvature @ jacobian + np.eye(len(here)), jacobian.T @ gradient - here
    )

    def objective(there: Floats) -> float:
        cuts, fit = cuts_of(there[:1], there[1:]), 0.0
        for block in blocks(given):
            probability = label_probabilities(offsets(cuts, grid, bias[block], scale[block]))
            fit += float(np.einsum("agn,agn->", given[block], np.log(probability)))
        return fit - float(there @ there) / 2

    for _ in range(_HALVINGS):
        if objective(here + step) >= before:
            here = here + step
            break
        step /= 2
    return here[:1], here[1:]


def blocks(cells: Floats, times: int = 1) -> Iterator[slice]:
    """Return blocks of annotators, the first axis, small enough for this many copies in memory.

    >>> list(blocks(np.empty((3, 2**8, 2**8))))
    [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)]
    """
    size = max(1, _CELLS // max(1, times * int(np.prod(cells.shape[1:]))))
    return (slice(first, first + size) for first in range(0, len(cells), size))
