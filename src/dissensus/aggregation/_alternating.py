"""Belief and parameters in turns, for what is learned in another way than from counts.

Parameters of items, or weights of features, do not follow from sums over parts of the items, as
`_em` wants it. Here a method says where it begins and what one round makes of the last; the loop
is that of all rounds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from .._fixed_point import rounds, still
from .._relation import Floats
from ..annotations import Annotations, Part
from ..params import Count, NonNegative
from ..result import Aggregation
from ._base import Aggregator, Fit, first_best, share
from ._em import logs, normalise

__all__ = ["AlternatingAggregator", "Reached", "expected", "first_posterior"]

Params = TypeVar("Params")


class Reached(NamedTuple, Generic[Params]):
    """Where a round has come."""

    params: Params
    posterior: Floats = np.empty((0, 0))  # (item, class), or empty: nothing is believed yet
    objective: float = np.nan
    gauge: float = np.nan  # another number that may tell how far it has come


@dataclass(frozen=True, kw_only=True)
class AlternatingAggregator(Aggregator, Generic[Params]):
    """A model whose parameters and belief are improved in turns.

    Parameters
    ----------
    max_iter
        Rounds at most.
    tol
        Stop when a round changes the objective by less than this share of it.
    """

    max_iter: Count = 200
    tol: NonNegative = 1e-6

    @abstractmethod
    def begin(self, fit: Fit) -> Reached[Params]:
        """Return what is known before the first round."""

    @abstractmethod
    def advance(self, fit: Fit, last: Reached[Params]) -> Reached[Params]:
        """Return better parameters, the belief under them, and the objective."""

    def settled(self, trace: list[float], now: Reached[Params], before: Reached[Params]) -> bool:
        """Return whether the last round changed so little that no other is needed."""
        return still(trace, self.tol)

    def notes(self, annotations: Annotations) -> tuple[str, ...]:
        """Return sentences that a person should read beside the labels."""
        return ()

    def infer(self, fit: Fit) -> Aggregation:
        """Return where the rounds end."""
        advance = partial(self.advance, fit)
        ended = rounds(self.begin(fit), advance, self.settled, self.max_iter, fit.progress)
        last = ended.last
        return self.conclude(
            fit,
            last.posterior,
            first_best(last.posterior),
            params=last.params,
            trace=ended.trace,
            converged=ended.converged,
            notes=self.notes(fit.annotations),
        )


def first_posterior(fit: Fit) -> Floats:
    """Return a belief to start from, by default shares of votes, with gold in its place."""
    return fit.over_items(partial(_start, start=fit.start))


def _start(part: Part, start: Floats | None) -> Floats:
    posterior = share(part.votes) if start is None else start[part.start : part.stop]
    return normalise(logs(posterior), part.allowed)[1]


def expected(fit: Fit, expect: Callable[[Part], tuple[float, Floats]]) -> tuple[Floats, float]:
    """Return the posterior of all items and the log evidence, which a part tells the other way."""
    told = list(fit.engine.each(expect, fit.parts))
    return np.concatenate([part for _, part in told]), sum(evidence for evidence, _ in told)
