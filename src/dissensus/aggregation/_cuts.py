"""Places on a line, cuts that divide it into classes, and annotators who see places with noise.

The steps are Fisher's scoring: slope of the log posterior over its expected bend. A step that does
not help is halved until it does, or not taken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import expit, ndtr

from .._relation import Floats

__all__ = ["blocks", "chances", "cut_better", "cuts_of", "offsets", "see_better"]

_CELLS = 2**16  # numbers in the arrays of one block of annotators
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
    """Return how far cuts are from places, in units of noise: (annotator, threshold, node)."""
    return (cuts[:, None] - grid - bias[:, None, None]) * scale[:, None, None]


def density(off: Floats) -> Floats:
    """Return the standard normal density."""
    return np.exp(off * off * -0.5) / np.sqrt(2 * np.pi)


def chances(off: Floats) -> Floats:
    """Return how probable every label is at every place: (annotator, given class, node).

    Small ones are differences of small ones, on either side.
    """
    n_annotators, n_cuts, n_nodes = off.shape
    chance = np.ones((n_annotators, n_cuts + 1, n_nodes))
    if n_cuts == 0:
        return chance
    high, tail = off > 0, ndtr(-np.abs(off))
    below, above = np.where(high, 1 - tail, tail), np.where(high, tail, 1 - tail)
    chance[:, 0], chance[:, -1] = below[:, 0], above[:, -1]
    chance[:, 1:-1] = np.where(
        high[:, :-1], above[:, :-1] - above[:, 1:], below[:, 1:] - below[:, :-1]
    )
    return np.maximum(chance, _LEAST, out=chance)


def _steps(values: Floats) -> Floats:
    """Return by how much values at the ends of a class differ, none at the outer ends."""
    out = np.zeros((values.shape[0], values.shape[1] + 1, values.shape[2]))
    out[:, :-1] = values
    out[:, 1:] -= values
    return out


def see_better(
    given: Floats,  # (annotator, given class, node)
    cuts: Floats,
    grid: Floats,
    bias: Floats,
    log_precision: Floats,
) -> tuple[Floats, Floats]:
    """Return better biases and logarithms of precisions; both have standard normal priors."""
    scale = np.exp(log_precision / 2)
    off = offsets(cuts, grid, bias, scale)
    chance, height = chances(off), density(off)
    by_bias = _steps(height * -scale[:, None, None])
    by_precision = _steps(off * height / 2)
    pull, weight = given / chance, given.sum(axis=1, keepdims=True) / chance
    slope_b = np.einsum("agn,agn->a", pull, by_bias) - bias
    slope_p = np.einsum("agn,agn->a", pull, by_precision) - log_precision
    bend_b = np.einsum("agn,agn,agn->a", weight, by_bias, by_bias) + 1
    bend_p = np.einsum("agn,agn,agn->a", weight, by_precision, by_precision) + 1
    both = np.einsum("agn,agn,agn->a", weight, by_bias, by_precision)
    total = bend_b * bend_p - both**2
    step_b = (bend_p * slope_b - both * slope_p) / total
    step_p = (bend_b * slope_p - both * slope_b) / total

    before = _worth(given, chance, bias, log_precision)
    worse = np.arange(len(bias))
    for _ in range(_HALVINGS):
        there = (bias + step_b)[worse], (log_precision + step_p)[worse]
        chance = chances(offsets(cuts, grid, there[0], np.exp(there[1] / 2)))
        worse = worse[~(_worth(given[worse], chance, *there) >= before[worse])]
        if len(worse) == 0:
            break
        step_b[worse] /= 2
        step_p[worse] /= 2
    step_b[worse] = step_p[worse] = 0.0
    return bias + step_b, log_precision + step_p


def _worth(given: Floats, chance: Floats, bias: Floats, log_precision: Floats) -> Floats:
    return np.einsum("agn,agn->a", given, np.log(chance)) - (bias**2 + log_precision**2) / 2


def cut_better(
    given: Floats,  # (annotator, given class, node)
    middle: Floats,
    gap: Floats,
    grid: Floats,
    bias: Floats,
    scale: Floats,
) -> tuple[Floats, Floats]:
    """Return better cuts by middle and gaps; both have standard normal priors."""
    if len(middle) == 0:
        return middle, gap
    cuts = cuts_of(middle, gap)
    slope, bend = np.zeros(len(cuts)), np.zeros((len(cuts), len(cuts)))
    every, behind = np.arange(len(cuts)), np.arange(len(cuts) - 1)
    before = -0.5 * float(middle @ middle + gap @ gap)
    for block in blocks(given):
        off = offsets(cuts, grid, bias[block], scale[block])
        chance, height = chances(off), density(off) * scale[block][:, None, None]
        before += float(np.einsum("agn,agn->", given[block], np.log(chance)))
        pull, weight = given[block] / chance, given[block].sum(axis=1, keepdims=True) / chance
        slope += np.einsum("acn,acn->c", height, pull[:, :-1] - pull[:, 1:])
        bend[every, every] += np.einsum("acn,acn->c", height**2, weight[:, :-1] + weight[:, 1:])
        near = np.einsum("acn,acn->c", height[:, :-1] * height[:, 1:], weight[:, 1:-1])
        bend[behind, behind + 1] -= near
        bend[behind + 1, behind] -= near
    moved = (every[:, None] > behind) * expit(gap)  # (cut, gap)
    turn = np.concatenate([np.ones((len(cuts), 1)), moved - moved.mean(axis=0)], axis=1)
    here = np.concatenate([middle, gap])
    step = np.linalg.solve(turn.T @ bend @ turn + np.eye(len(here)), turn.T @ slope - here)

    def worth(there: Floats) -> float:
        cuts, fit = cuts_of(there[:1], there[1:]), 0.0
        for block in blocks(given):
            chance = chances(offsets(cuts, grid, bias[block], scale[block]))
            fit += float(np.einsum("agn,agn->", given[block], np.log(chance)))
        return fit - float(there @ there) / 2

    for _ in range(_HALVINGS):
        if worth(here + step) >= before:
            here = here + step
            break
        step /= 2
    return here[:1], here[1:]


def blocks(cells: Floats, times: int = 1) -> Iterator[slice]:
    """Return annotators, the first axis, in blocks small enough to work on so many times at once.

    >>> list(blocks(np.empty((3, 2**8, 2**8))))
    [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)]
    """
    size = max(1, _CELLS // max(1, times * int(np.prod(cells.shape[1:]))))
    return (slice(first, first + size) for first in range(0, len(cells), size))
