"""Expectation maximisation, once for all methods with a hidden true class.

A method says four things, each over a part of the items: `log_joint`, `counts`, `update` and
`log_prior`. The loop here owns the start, restarts, gold, tolerance, trace and progress. Counts
add up over parts, so the same method runs on one thread, on all cores, or elsewhere. What a round
learns from need not be the posterior (`weigh`), nor its end a matter of the objective (`settled`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from .._fixed_point import Ended, rounds, still
from .._relation import Floats, Integers
from ..annotations import Part
from ..params import Count, NonNegative
from ..result import Aggregation
from ._base import Aggregator, Fit, Found, first_best, share

__all__ = ["EMAggregator", "Expected", "harden", "logs", "normalise", "share"]

Params = TypeVar("Params")
Counts = TypeVar("Counts")

_SAFE = -700.0  # exp() of anything above this is not zero


class Expected(NamedTuple):
    """What one part tells: how probable it is, and what to learn from it."""

    evidence: float
    counts: Any


@dataclass(frozen=True, kw_only=True)
class EMAggregator(Aggregator, Generic[Params, Counts]):
    """A model with a hidden true class, fitted in rounds.

    Parameters
    ----------
    max_iter
        Rounds at most.
    tol
        Stop when a round changes the objective by less than this share of it.
    restarts
        Starts to try; the first is from the votes, the others from votes with a random one added.
        The result with the best objective is kept.
    """

    additive: ClassVar[bool] = True
    own_start: ClassVar[bool] = False  # where the start decides the end, none but the votes

    max_iter: Count = 200
    tol: NonNegative = 1e-6
    restarts: Count = 1

    @abstractmethod
    def log_joint(self, part: Part, params: Params) -> Floats:
        """Return log P(truth, what was said): (item, class)."""

    @abstractmethod
    def counts(self, part: Part, posterior: Floats) -> Counts:
        """Return what is learned from a part: a tuple of arrays that add up over parts."""

    @abstractmethod
    def update(self, counts: Counts, last: Params | None) -> Params:
        """Return the best parameters for these counts."""

    def log_prior(self, params: Params) -> float:
        """Return the logarithm of the parameters' prior density, up to a constant."""
        return 0.0

    def weigh(self, joint: Floats, allowed: Floats | float) -> tuple[float, Floats]:
        """Return the evidence of a part and the belief to learn from, which may replace `joint`."""
        return normalise(joint, allowed)

    def settled(self, trace: list[float], params: Params, before: Params) -> bool:
        """Return whether the last round changed so little that no other is needed."""
        return still(trace, self.tol)

    def infer(self, fit: Fit) -> Aggregation:
        """Return the result of the best of all starts."""
        params, trace, converged = self.find(fit)
        posterior, label = self.judge(fit, params)
        return self.conclude(fit, posterior, label, params=params, trace=trace, converged=converged)

    def find(self, fit: Fit) -> Found:
        """Return what is learned from the best of all starts."""
        runs = [self.run(fit, attempt) for attempt in range(self.restarts)]
        return max(runs, key=lambda found: found.trace[-1])

    def judge(self, fit: Fit, params: Params) -> tuple[Floats, Integers]:
        """Return posterior and labels under parameters that are known."""
        posterior = fit.over_items(partial(self.believe, params=params))
        return posterior, first_best(posterior)

    def expect(self, part: Part, params: Params) -> Expected:
        """Return evidence and counts of a part under the parameters."""
        evidence, posterior = self.weigh(self.log_joint(part, params), part.allowed)
        posterior[part.blank] = 0.0
        return Expected(evidence, self.counts(part, posterior))

    def believe(self, part: Part, params: Params) -> Floats:
        """Return the posterior of a part under the parameters."""
        return normalise(self.log_joint(part, params), part.allowed)[1]

    def first_counts(self, fit: Fit, attempt: int) -> Counts:
        """Return the counts that an attempt begins with."""
        start = None if self.own_start else fit.start
        stream = [fit.seed, attempt] if attempt else None
        return fit.add_up(partial(self.begin, start=start, stream=stream))

    def begin(self, part: Part, start: Floats | None, stream: list[int] | None) -> Counts:
        """Return the counts of a part under a belief to start from, or one that is half random.

        Random numbers belong to the places of items, so parts make no difference.
        """
        if stream is None:
            return self.learn(part, start)
        posterior = part.votes if start is None else start[part.start : part.stop]
        random = np.random.PCG64(stream)
        random.advance(part.start * part.n_classes)
        more = -np.log1p(-np.random.Generator(random).random(posterior.shape))
        return self.learn_from(part, share(posterior + more))

    def learn_from(self, part: Part, posterior: Floats) -> Counts:
        """Return the counts of a part under a belief about its items."""
        return self.learn(replace(part, start=0, stop=len(posterior)), posterior)

    def learn(self, part: Part, start: Floats | None) -> Counts:
        """Return the counts of a part under a belief to start from, by default its votes."""
        posterior = share(part.votes) if start is None else start[part.start : part.stop]
        _, posterior = self.weigh(logs(posterior), part.allowed)
        posterior[part.blank] = 0.0
        return self.counts(part, posterior)

    def run(self, fit: Fit, attempt: int) -> Found:
        """Return what one start leads to."""

        def expect(params: Params) -> _Step:
            expected = fit.add_up(partial(self.expect, params=params))
            return _Step(params, expected.counts, expected.evidence + self.log_prior(params))

        def advance(last: _Step) -> _Step:
            return expect(self.update(last.counts, last.params))

        def settled(trace: list[float], now: _Step, before: _Step) -> bool:
            return len(trace) > 1 and self.settled(trace, now.params, before.params)

        def keep(ended: Ended[_Step]) -> None:
            if fit.kept is not None:
                found = Found(ended.last.params, ended.trace, ended.converged)
                fit.kept.save(found, attempt)

        begun = fit.kept.load(self.learns, attempt) if fit.kept is not None else None
        first = (
            _Step(None, self.first_counts(fit, attempt)) if begun is None else expect(begun.params)
        )
        ended = rounds(
            first,
            advance,
            settled,
            self.max_iter,
            fit.progress,
            begun=() if begun is None else begun.trace,
            converged=begun is not None and begun.converged,
            keep=keep,
        )
        return Found(ended.last.params, ended.trace, ended.converged)


class _Step(NamedTuple):
    params: Any  # `None` before the first round
    counts: Any
    objective: float = np.nan


_TINY = 1e-300
_LEVEL = 1e-10  # log probabilities closer than this, by their size, are equal


def logs(probabilities: Floats) -> Floats:
    """Return logarithms; what cannot be counts as one in 1e300."""
    return np.log(np.maximum(probabilities, _TINY))


def normalise(joint: Floats, allowed: Floats | float = 0.0) -> tuple[float, Floats]:
    """Return the log evidence of all items and their posteriors, which replace `joint`.

    Where nothing can underflow, the row maximum need not be taken out first.
    """
    if isinstance(allowed, np.ndarray):
        joint += allowed
    shift = 0.0
    if joint.size and not joint.min() > _SAFE:
        highest = joint.max(axis=1, keepdims=True)
        joint -= highest
        shift = float(highest.sum())
    np.exp(joint, out=joint)
    total = np.einsum("ik->i", joint)
    joint *= (1 / total)[:, None]
    return float(np.log(total).sum()) + shift, joint


def harden(
    joint: Floats, allowed: Floats | float = 0.0, first: bool = False
) -> tuple[float, Floats]:
    """Return the log probability of the best classes, and belief in them, which replaces `joint`.

    Classes that are equally good share the belief, or the first of them gets it all.
    """
    if isinstance(allowed, np.ndarray):
        joint += allowed
    highest = joint.max(axis=1)
    level = highest - _LEVEL * np.maximum(1.0, np.abs(highest))
    leading = joint >= level[:, None]
    if first:
        leading &= leading.cumsum(axis=1) == 1
    among = np.einsum("ik->i", leading.view(np.uint8), dtype=np.int64)
    np.divide(leading, among[:, None], out=joint)
    return float(highest.sum()), joint
