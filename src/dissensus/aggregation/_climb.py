"""Newton steps of many parameters that do not look at each other, in a logistic model.

Log odds x of annotations are moved by parameters of annotators or items. The expected log
likelihood is then a sum over parameters, so each takes a step of its own, and only those whose
step would lose have to try a shorter one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._relation import Floats, Integers

__all__ = ["Slopes", "climb", "logistic", "pull", "slopes"]

_FURTHEST = 2.0  # no step goes further than this
_HALVINGS = 30
_SLACK = 1e-12  # losses below this share are rounding


class Slopes(NamedTuple):
    """An expected log likelihood, its first and minus its second derivative."""

    value: Floats
    slope: Floats
    curve: Floats


def slopes(
    x: Floats, rate: Floats, believed: Floats, whose: Integers, size: int, whole: bool = True
) -> Slopes:
    """Return the slopes of parameters that move the log odds x at a rate, for every annotation."""
    right, log_sum = logistic(x)
    value = _sums(whose, believed * x - log_sum, size)
    if not whole:
        return Slopes(value, np.zeros(1), np.zeros(1))
    slope, curve = (believed - right) * rate, right * (1 - right) * rate**2
    return Slopes(value, _sums(whose, slope, size), _sums(whose, curve, size))


def _sums(whose: Integers, value: Floats, size: int) -> Floats:
    return np.bincount(whose, value, size).astype(float, copy=False)


def pull(told: Slopes, away: Floats) -> Slopes:
    """Return slopes with those of a normal prior added."""
    value, slope, curve = told
    return Slopes(value - 0.5 * away**2, slope - away, curve + 1)


def climb(here: Floats, at: Callable[[Floats, bool], Slopes]) -> tuple[Floats, Floats]:
    """Return better parameters and their values: one Newton step of each, halved until it gains."""
    now = at(here, True)
    step = np.clip(now.slope / now.curve, -_FURTHEST, _FURTHEST)
    least = now.value - _SLACK * np.abs(now.value)
    for _ in range(_HALVINGS):
        value = at(here + step, False).value
        worse = value < least
        if not worse.any():
            return here + step, value
        step[worse] /= 2
    return np.where(worse, here, here + step), np.where(worse, now.value, value)


def logistic(x: Floats) -> tuple[Floats, Floats]:
    """Return sigmoid(x) and log(1 + exp(x)), for any x."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1 + small), np.maximum(x, 0) + np.log1p(small)
