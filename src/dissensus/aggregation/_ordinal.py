"""What methods for classes in an order share: the decision between neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._relation import Floats, Integers
from ._base import TIE, Aggregator, Fit, first_best

__all__ = ["OrdinalAggregator", "decide"]

Decision = Literal["class", "median", "mean"]


@dataclass(frozen=True, kw_only=True)
class OrdinalAggregator(Aggregator):
    """A method for classes in an order, which is the order they are declared in.

    Parameters
    ----------
    decision
        The label of an item: the most probable `class`, which is wrong least often; the `median`
        of the posterior, which is off by the fewest classes; or the class nearest to the `mean`,
        which avoids large misses.
    """

    decision: Decision = "class"

    def judge(self, fit: Fit, params: Any) -> tuple[Floats, Integers]:
        """Return posterior and labels under parameters that are known."""
        posterior, _ = super().judge(fit, params)
        return posterior, decide(posterior, self.decision)


def decide(posterior: Floats, decision: Decision) -> Integers:
    """Return the label of every item; between two that are equally good, the lower one.

    >>> posterior = np.array([[0.4, 0.15, 0.15, 0.3]])
    >>> [decide(posterior, rule).tolist() for rule in ("class", "median", "mean")]
    [[0], [1], [1]]
    """
    if decision == "class":
        return first_best(posterior)
    if decision == "median":
        return (posterior.cumsum(axis=1) >= 0.5 - TIE).argmax(axis=1)
    mean = posterior @ np.arange(posterior.shape[1])
    return np.ceil(mean - 0.5 - TIE).astype(np.int64)
