"""The decision of methods for ordered classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..base.probability import TIE, most_probable
from ..base.arrays import Floats, Integers
from ..method import Aggregator, FitContext

Decision = Literal["class", "median", "mean"]


@dataclass(frozen=True, kw_only=True)
class OrdinalAggregator(Aggregator):
    """A method for ordered classes, in the order they are declared in.

    Parameters
    ----------
    decision
        The label of an item: the most probable `class`, which minimizes the error rate; the
        `median` of the posterior, which minimizes the mean absolute error; or the class nearest to
        the `mean`, which minimizes the mean squared error.
    """

    decision: Decision = "class"

    def decide(self, fit: FitContext, posterior: Floats, params: Any) -> Integers:
        return decide(posterior, self.decision)


def decide(posterior: Floats, decision: Decision) -> Integers:
    """Return the label of every item; of tied classes, the lower one.

    >>> posterior = np.array([[0.4, 0.15, 0.15, 0.3]])
    >>> [decide(posterior, rule).tolist() for rule in ("class", "median", "mean")]
    [[0], [1], [1]]
    """
    if decision == "class":
        return most_probable(posterior)
    if decision == "median":
        return (posterior.cumsum(axis=1) >= 0.5 - TIE).argmax(axis=1)
    mean = posterior @ np.arange(posterior.shape[1])
    return np.ceil(mean - 0.5 - TIE).astype(np.int64)
