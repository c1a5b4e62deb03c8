"""Expectation maximization, once for all methods with a latent true class.

A method writes four hooks, each over a part of the items: `log_joint`, `counts`, `update` and
`log_prior`. The loop here owns the start, restarts, gold, tolerance, trace and progress. Counts
add up over parts, so the same method runs on one thread, on all cores, or elsewhere. A method may
also replace the posterior it learns from (`normalize_joint`) and the test of convergence
(`has_converged`).

Parameters of items, or weights of features, do not follow from sums over parts of the items. For
these there is `Alternating`: a method provides the first state and the update of a state,
and posterior and parameters are improved in turns.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from ..answers.annotations import Part
from ..base.arrays import Floats
from ..base.iteration import Iterations, iterate, relative_change_below
from ..base.probability import log_normalize, normalize, safe_log
from ..method import Fitted
from ..params import Count, NonNegative
from .classes import ClassContext, ClassMethod

Params = TypeVar("Params")
Counts = TypeVar("Counts")


class Expected(NamedTuple):
    """The result of an E-step over one part."""

    evidence: float
    counts: Any


class Step(NamedTuple):
    """The state after an iteration."""

    params: Any  # `None` before the first iteration
    counts: Any
    objective: float = np.nan


@dataclass(frozen=True, kw_only=True)
class EM(ClassMethod, Generic[Params, Counts]):
    """A model with a latent true class, fitted with EM.

    Parameters
    ----------
    max_iter
        Maximum number of iterations.
    tol
        Relative change of the objective below which the fit has converged.
    restarts
        Number of starts: the first from the votes, the others from votes with noise. The result
        with the best objective is kept.
    """

    additive: ClassVar[bool] = True
    own_start: ClassVar[bool] = False  # whether it always starts from the votes

    max_iter: Count = 200
    tol: NonNegative = 1e-6
    restarts: Count = 1

    @abstractmethod
    def log_joint(self, part: Part, params: Params) -> Floats:
        """Return log P(truth, labels): (item, class)."""

    @abstractmethod
    def counts(self, part: Part, posterior: Floats) -> Counts:
        """Return expected sufficient statistics: a tuple of arrays that add up over parts."""

    @abstractmethod
    def update(self, counts: Counts, last: Params | None) -> Params:
        """Return the parameters that maximize the expected log posterior."""

    def log_prior(self, params: Params) -> float:
        """Return the log prior density of the parameters, up to a constant."""
        return 0.0

    def normalize_joint(self, joint: Floats, allowed: Floats | float) -> tuple[float, Floats]:
        """Return the evidence of a part and the posterior to learn from."""
        return log_normalize(joint, allowed)

    def has_converged(self, trace: list[float], step: Step, last: Step) -> bool:
        """Return whether the last iteration changed little enough to stop."""
        return relative_change_below(trace, self.tol)

    def estimate_params(self, fit: ClassContext) -> Fitted:
        runs = [self.run(fit, attempt) for attempt in range(self.restarts)]
        return max(runs, key=lambda fitted: fitted.trace[-1])

    def e_step(self, part: Part, params: Params) -> Expected:
        """Return evidence and expected counts of a part."""
        evidence, posterior = self.normalize_joint(self.log_joint(part, params), part.allowed)
        posterior[part.blank] = 0.0
        return Expected(evidence, self.counts(part, posterior))

    def part_posterior(self, part: Part, params: Params) -> Floats:
        return log_normalize(self.log_joint(part, params), part.allowed)[1]

    def first_counts(self, fit: ClassContext, attempt: int) -> Counts:
        """Return the counts that an attempt starts from."""
        start = None if self.own_start else fit.start
        seed = [fit.seed, attempt] if attempt else None
        return fit.engine.add_up(partial(self._start, start=start, seed=seed), fit.parts)

    def _start(self, part: Part, start: Floats | None, seed: list[int] | None) -> Counts:
        """Return the counts of a part from a start, with noise for later attempts.

        Random numbers belong to items, so it does not matter how items are cut into parts.
        """
        posterior = None if start is None else start[part.start : part.stop]
        if seed is not None:
            random = np.random.PCG64(seed)
            random.advance(part.start * part.n_classes)
            posterior = part.votes() if posterior is None else posterior
            noise = -np.log1p(-np.random.Generator(random).random(posterior.shape))
            posterior = normalize(posterior + noise)
        return self.initial_counts(
            part, normalize(part.votes()) if posterior is None else posterior
        )

    def initial_counts(self, part: Part, posterior: Floats) -> Counts:
        """Return the counts of a part under a posterior to start from: (item, class)."""
        _, posterior = self.normalize_joint(safe_log(posterior), part.allowed)
        posterior[part.blank] = 0.0
        return self.counts(part, posterior)

    def run(self, fit: ClassContext, attempt: int) -> Fitted:
        """Return the parameters that one start leads to."""

        def advance(last: Step) -> Step:
            params = self.update(last.counts, last.params)
            evidence, counts = fit.engine.add_up(partial(self.e_step, params=params), fit.parts)
            return Step(params, counts, evidence + self.log_prior(params))

        def checkpoint(reached: Iterations[Step]) -> None:
            store.save(Fitted(reached.state.params, reached.trace, reached.converged), attempt)

        store: Any = fit.checkpoints
        saved = store.load(self.params_type, attempt) if store else None
        if saved:
            expected = fit.engine.add_up(partial(self.e_step, params=saved.params), fit.parts)
            start = Step(saved.params, expected.counts)
        else:
            start = Step(None, self.first_counts(fit, attempt))
        step, trace, converged = iterate(
            start,
            advance,
            self.has_converged,
            max_iter=self.max_iter,
            progress=fit.progress,
            trace=saved.trace if saved else (),
            converged=saved.converged if saved else False,
            checkpoint=checkpoint if store else None,
        )
        return Fitted(step.params, trace, converged)


class State(NamedTuple, Generic[Params]):
    """The state after an iteration."""

    params: Params
    posterior: Floats = np.empty((0, 0))  # (item, class), or empty before the first iteration
    objective: float = np.nan
    expected_likelihood: float = np.nan  # where convergence is a matter of it


@dataclass(frozen=True, kw_only=True)
class Alternating(ClassMethod, Generic[Params]):
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
    def first_state(self, fit: ClassContext) -> State[Params]:
        """Return the state before the first iteration."""

    @abstractmethod
    def advance(self, fit: ClassContext, last: State[Params]) -> State[Params]:
        """Return better parameters, the posterior under them, and the objective."""

    def has_converged(self, trace: list[float], state: State[Params], last: State[Params]) -> bool:
        """Return whether the last iteration changed little enough to stop."""
        return relative_change_below(trace, self.tol)

    def estimate_params(self, fit: ClassContext) -> Fitted:
        start, advance = self.first_state(fit), partial(self.advance, fit)
        reached = iterate(
            start, advance, self.has_converged, max_iter=self.max_iter, progress=fit.progress
        )
        return Fitted(reached.state.params, reached.trace, reached.converged)


def start_posterior(fit: ClassContext) -> Floats:
    """Return the posterior to start from, by default vote shares, with gold kept."""
    return fit.over_items(partial(_start, start=fit.start))


def _start(part: Part, start: Floats | None) -> Floats:
    posterior = normalize(part.votes()) if start is None else start[part.start : part.stop]
    return log_normalize(safe_log(posterior), part.allowed)[1]


def expectation(
    fit: ClassContext, e_step: Callable[[Part], tuple[float, Floats]]
) -> tuple[Floats, float]:
    """Return the posterior of all items and the log evidence, from those of the parts."""
    evidence, posterior = zip(*fit.engine.each(e_step, fit.parts), strict=True)
    return np.concatenate(posterior), sum(evidence)
