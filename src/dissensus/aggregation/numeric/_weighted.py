"""Weighted means in rounds: values from weights of annotators, weights from what they miss by.

A method says how it weighs annotators by their losses. Start, gold, the end and the standard
errors are here.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._fixed_point import rounds
from ..._relation import Floats
from ...params import Count, NonNegative
from ._base import Estimator, Fit, ratio
from .result import Estimation

__all__ = ["WeightedMean"]


class Reached(NamedTuple):
    """Where a round has come."""

    value: Floats  # (item)
    weight: Floats = np.empty(0)  # (annotator)
    objective: float = math.nan


@dataclass(frozen=True, kw_only=True)
class WeightedMean(Estimator):
    """Values and weights of annotators, in turns.

    Parameters
    ----------
    max_iter
        Rounds at most.
    tol
        Stop when a round moves the values by less than this share of the answers' standard
        deviation, in the mean of squares.
    """

    max_iter: Count = 50
    tol: NonNegative = 1e-6

    @abstractmethod
    def weigh(self, fit: Fit, loss: Floats) -> Floats:
        """Return the weight of every annotator from the losses on all their answers."""

    def objective(self, fit: Fit, loss: Floats) -> float:
        """Return what the rounds make as large as they can; NaN where there is no such thing."""
        return math.nan

    def losses(self, fit: Fit, value: Floats) -> Floats:
        """Return how bad every answer is."""
        return fit.off(value) ** 2

    def locate(self, fit: Fit, weight: Floats) -> Floats:
        """Return the best value of every item under weights of answers."""
        return fit.mean(weight)

    def start(self, fit: Fit) -> Floats:
        """Return the values to begin with."""
        return fit.mean(np.ones(len(fit.annotations)))

    def errors(self, fit: Fit, value: Floats, weight: Floats) -> Floats:
        """Return standard errors of weighted means, if annotators miss as they missed here."""
        size = fit.annotations.labels_per_annotator
        variance = ratio(fit.by_annotator(fit.off(value) ** 2), size)[fit.annotations.annotator]
        return ratio(np.sqrt(fit.by_item(weight**2 * variance)), fit.by_item(weight))

    def infer(self, fit: Fit) -> Estimation:
        annotator, scored = fit.annotations.annotator, fit.annotations.labels_per_item > 0

        def advance(last: Reached) -> Reached:
            loss = fit.by_annotator(self.losses(fit, last.value))
            weight = self.weigh(fit, loss)
            value = fit.keep_gold(self.locate(fit, weight[annotator]))
            return Reached(value, weight, self.objective(fit, loss))

        def settled(_trace: list[float], now: Reached, before: Reached) -> bool:
            moved = np.mean((now.value - before.value)[scored] ** 2)
            return bool(moved <= self.tol**2 * fit.variance)

        first = Reached(fit.keep_gold(self.start(fit)))
        (value, weight, _), trace, converged = rounds(
            first, advance, settled, self.max_iter, fit.progress
        )
        return self.conclude(
            fit,
            value,
            self.errors(fit, value, weight[annotator]),
            weight=weight,
            trace=() if np.isnan(trace).any() else trace,
            converged=converged,
        )
