"""Truth discovery: weights of annotators from their losses, for classes and for numbers.

A loss is the number of wrong labels, or a sum of distances from the inferred values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Interval
from scipy.special import gammaincinv

from ..base.arrays import Floats, Integers
from ..params import Settings
from .votes import IteratedVote, Record

_LEAST_LOSS = 1e-9  # added to every loss, in units of the losses
_LEAST_SHARE = 1e-12
_LEAST_WEIGHT = 1e-12  # where nobody else answered, the worst annotator decides


@dataclass(frozen=True, kw_only=True)
class TruthDiscovery(Settings, ABC):
    """Weights of annotators from their losses."""

    @abstractmethod
    def weights(self, loss: Floats, labels: Floats | Integers, unit: float) -> Floats:
        """Return the weights: (annotator)."""

    @abstractmethod
    def objectives(self, loss: Floats, labels: Floats | Integers, unit: float) -> Floats:
        """Return every annotator's part of the objective."""

    @property
    def has_objective(self) -> bool:
        """Whether truths and weights maximize a common objective."""
        return True


@dataclass(frozen=True, kw_only=True)
class CatdWeights(TruthDiscovery):
    """One over the upper confidence bound of the rate of loss.

    Parameters
    ----------
    alpha
        One minus the level of the confidence interval.
    """

    alpha: Annotated[float, Interval(gt=0, lt=1)] = 0.05

    def quantile(self, labels: Floats | Integers) -> Floats:
        """Return the lower quantile of chi-squared with as many degrees of freedom as labels.

        >>> from dissensus.aggregation import Catd
        >>> Catd().quantile(np.array([0, 1, 10])).round(3).tolist()
        [0.0, 0.001, 3.247]
        """
        quantile = 2 * gammaincinv(np.maximum(labels, 1) / 2, self.alpha / 2)
        return np.where(labels > 0, quantile, 0.0)

    def weights(self, loss: Floats, labels: Floats | Integers, unit: float) -> Floats:
        return self.quantile(labels) / (loss + _LEAST_LOSS * unit)

    def objectives(self, loss: Floats, labels: Floats | Integers, unit: float) -> Floats:
        return -self.quantile(labels) * np.log(loss + _LEAST_LOSS * unit)


@dataclass(frozen=True, kw_only=True)
class CrhWeights(TruthDiscovery):
    """Minus the logarithm of the share in all losses.

    Parameters
    ----------
    per_label
        Whether an annotator's loss is the mean over their labels instead of the sum, so that many
        labels are no disadvantage. Truths and weights then have no common objective.
    """

    per_label: bool = False

    @property
    def has_objective(self) -> bool:
        return not self.per_label

    def reference(self, loss: Floats) -> float:
        """Return what losses are divided by: their sum."""
        return float(loss.sum())

    def weights(self, loss: Floats, labels: Floats | Integers, unit: float) -> Floats:
        if self.per_label:
            loss = loss / np.maximum(labels, 1)
        reference = self.reference(loss)
        if reference <= 0:
            return np.ones(len(loss))
        share = np.clip(loss / reference, _LEAST_SHARE, 1)
        return np.maximum(np.log(1 / share), _LEAST_WEIGHT)

    def objectives(self, loss: Floats, labels: Floats | Integers, unit: float) -> Floats:
        return -self.weights(loss, labels, unit) * loss


@dataclass(frozen=True, kw_only=True)
class PmWeights(CrhWeights):
    """Minus the logarithm of the loss as a fraction of the largest loss."""

    @property
    def has_objective(self) -> bool:
        return False

    def reference(self, loss: Floats) -> float:
        return float(loss.max())


@dataclass(frozen=True, kw_only=True)
class DiscoveryVote(TruthDiscovery, IteratedVote):
    """Votes weighted by truth discovery; the loss is the number of wrong labels."""

    def weight(self, record: Record) -> Floats:
        return self.weights(record.wrong, record.labels, 1.0)

    def objective(self, record: Record) -> Floats:
        return self.objectives(record.wrong, record.labels, 1.0)
