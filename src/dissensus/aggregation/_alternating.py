"""Posterior and parameters in turns, for parameters that do not follow from additive counts.

Parameters of items, or weights of features, do not follow from sums over parts of the items, as
`_em` requires. Here a method provides the first state and the update of a state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from ..base.iteration import iterate, relative_change_below
from ..base.probability import log_normalize, normalize, safe_log
from ..base.arrays import Floats
from ..answers.annotations import Part
from ..params import Count, NonNegative
from ..method import Aggregator, FitContext, Fitted

Params = TypeVar("Params")


class State(NamedTuple, Generic[Params]):
    """The state after an iteration."""

    params: Params
    posterior: Floats = np.empty((0, 0))  # (item, class), or empty before the first iteration
    objective: float = np.nan
    expected_likelihood: float = np.nan  # where convergence is a matter of it


@dataclass(frozen=True, kw_only=True)
class AlternatingAggregator(Aggregator, Generic[Params]):
    """A model whose parameters and posterior are improved in turns.

    Parameters
    ----------
    max_iter
        Maximum number of iterations.
    tol
        Relative change of the objective below which the fit has converged.
    """

    max_iter: Count = 200
    tol: NonNegative = 1e-6

    @abstractmethod
    def first_state(self, fit: FitContext) -> State[Params]:
        """Return the state before the first iteration."""

    @abstractmethod
    def advance(self, fit: FitContext, last: State[Params]) -> State[Params]:
        """Return better parameters, the posterior under them, and the objective."""

    def has_converged(self, trace: list[float], state: State[Params], last: State[Params]) -> bool:
        """Return whether the last iteration changed little enough to stop."""
        return relative_change_below(trace, self.tol)

    def estimate_params(self, fit: FitContext) -> Fitted:
        first, advance = self.first_state(fit), partial(self.advance, fit)
        reached = iterate(first, advance, self.has_converged, self.max_iter, fit.progress)
        return Fitted(reached.state.params, reached.trace, reached.converged)


def start_posterior(fit: FitContext) -> Floats:
    """Return the posterior to start from, by default vote shares, with gold kept."""
    return fit.over_items(partial(_start, start=fit.start))


def _start(part: Part, start: Floats | None) -> Floats:
    posterior = normalize(part.votes()) if start is None else start[part.start : part.stop]
    return log_normalize(safe_log(posterior), part.allowed)[1]


def expectation(
    fit: FitContext, e_step: Callable[[Part], tuple[float, Floats]]
) -> tuple[Floats, float]:
    """Return the posterior of all items and the log evidence, from those of the parts."""
    evidence, posterior = zip(*fit.engine.each(e_step, fit.parts), strict=True)
    return np.concatenate(posterior), sum(evidence)
