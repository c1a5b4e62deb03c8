"""Weighted means: values from weights of annotators, weights from annotators' errors, in turns.

A method provides the weights from losses. Start, gold, convergence and standard errors are here.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.iteration import iterate
from ..base.arrays import Floats
from ..params import Count, NonNegative
from ..result import Estimation
from .truth_discovery import TruthDiscovery
from .numbers import Estimator, NumericContext, ratio


class State(NamedTuple):
    """The state after an iteration."""

    value: Floats  # (item)
    weight: Floats = np.empty(0)  # (annotator)
    objective: float = math.nan


@dataclass(frozen=True, kw_only=True)
class WeightedMean(Estimator):
    """Weighted means and weights of annotators, in turns.

    Parameters
    ----------
    max_iter
        Maximum number of iterations.
    tol
        Root mean square change of the values below which the fit has converged, in standard
        deviations of the answers.
    """

    max_iter: Count = 50
    tol: NonNegative = 1e-6

    @abstractmethod
    def weight(self, fit: NumericContext, loss: Floats) -> Floats:
        """Return the weight of every annotator from the sum of their losses."""

    def objective(self, fit: NumericContext, loss: Floats) -> float:
        """Return the objective that iterations maximize; NaN where there is none."""
        return math.nan

    def losses(self, fit: NumericContext, value: Floats) -> Floats:
        """Return the loss of every answer."""
        return fit.errors(value) ** 2

    def locate(self, fit: NumericContext, weight: Floats) -> Floats:
        """Return the best value of every item under weights of answers."""
        return fit.mean(weight)

    def start(self, fit: NumericContext) -> Floats:
        """Return the values to start from."""
        return fit.mean(np.ones(len(fit.annotations)))

    def deviation(self, fit: NumericContext, value: Floats, weight: Floats) -> Floats:
        """Return standard errors of weighted means, from the errors of annotators."""
        size = fit.annotations.labels_per_annotator
        variance = ratio(fit.by_annotator(fit.errors(value) ** 2), size)[fit.annotations.annotator]
        return ratio(np.sqrt(fit.by_item(weight**2 * variance)), fit.by_item(weight))

    def infer(self, fit: NumericContext) -> Estimation:
        annotator, scored = fit.annotations.annotator, fit.annotations.labels_per_item > 0

        def advance(last: State) -> State:
            loss = fit.by_annotator(self.losses(fit, last.value))
            weight = self.weight(fit, loss)
            value = fit.keep_gold(self.locate(fit, weight[annotator]))
            return State(value, weight, self.objective(fit, loss))

        def has_converged(_trace: list[float], state: State, last: State) -> bool:
            change = np.mean((state.value - last.value)[scored] ** 2)
            return bool(change <= self.tol**2 * fit.variance)

        first = State(fit.keep_gold(self.start(fit)))
        (value, weight, _), trace, converged = iterate(
            first, advance, has_converged, self.max_iter, fit.progress
        )
        return self.result(
            fit,
            value,
            self.deviation(fit, value, weight[annotator]),
            weight=weight,
            trace=() if np.isnan(trace).any() else trace,
            converged=converged,
        )


@dataclass(frozen=True, kw_only=True)
class DiscoveryMean(TruthDiscovery, WeightedMean):
    """Means weighted by truth discovery."""

    def weight(self, fit: NumericContext, loss: Floats) -> Floats:
        return self.weights(loss, fit.annotations.labels_per_annotator, fit.variance)

    def objective(self, fit: NumericContext, loss: Floats) -> float:
        if not self.has_objective:
            return math.nan
        labels = fit.annotations.labels_per_annotator
        return float(self.objectives(loss, labels, fit.variance).sum())
