"""Plackett and Luce: a ranking chooses the best thing, then the best of the rest, and so on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.iteration import iterate, relative_change_below
from ..base.arrays import Floats, Integers
from ..answers.rankings import Rankings
from ..params import Count, NonNegative, Positive
from ..consensus_base import ConsensusContext, ConsensusMethod
from .rankings import rankings_result
from .aggregation import Consensus


class _Worths(NamedTuple):
    worth: Floats  # (thing)
    objective: float = np.nan


@dataclass(frozen=True, kw_only=True)
class PlackettLuce(ConsensusMethod):
    """Worths of things from rankings, the best chosen first.

    Plackett and Luce: a ranking chooses the best thing, then the best of the rest, and so on.

    A thing is chosen among those left with probability worth[thing] / sum of their worths. Worths
    are found by Hunter's minorization and maximization with a Gamma prior of half a choice. Tied
    things are put in random order. Of two things this is Bradley-Terry; of full rankings it weighs
    the top most.

        P(ranking) = Π_r worth[thing at r] / Σ over the things left of worth

    When it fails: Things that win or lose everything are held by the prior alone. Annotators are
    not distinguished, so careless ones count in full.

        R. L. Plackett. The analysis of permutations. Applied Statistics 24, 1975.

        D. R. Hunter. MM algorithms for generalized Bradley-Terry models. Annals of Statistics 32,
        2004.

    Parameters
    ----------
    prior
        Choices added to every thing, against one thing of average worth.
    max_iter
        Maximum number of iterations.
    tol
        Relative change of the objective below which the fit has converged.
    """

    prior: Positive = 0.5
    max_iter: Count = 1000
    tol: NonNegative = 1e-9

    def infer(self, fit: ConsensusContext) -> Consensus:
        answers: Rankings = fit.answers
        thing, left = _in_order(answers, fit.seed)
        choices = np.bincount(thing[left > 1], minlength=answers.n_things) + self.prior
        first = _Worths(np.ones(answers.n_things))

        def advance(last: _Worths) -> _Worths:
            inverse = 1 / _left_over(last.worth[thing], left)  # (element)
            inverse[left == 1] = 0.0  # nothing is chosen there
            total = _so_far(inverse, left)
            worth = choices / (np.bincount(thing, total, answers.n_things) + self.prior)
            log_worth = np.log(worth)
            chosen = log_worth[thing] - np.log(_left_over(worth[thing], left))
            prior = self.prior * float((log_worth - worth).sum())
            return _Worths(worth, float(chosen[left > 1].sum()) + prior)

        reached, trace, converged = iterate(
            first,
            advance,
            lambda trace, _step, _last: relative_change_below(trace, self.tol),
            self.max_iter,
            fit.progress,
        )
        score = np.log(reached.worth)
        information = _information(reached.worth, thing, left, answers.n_things) + self.prior
        notes = ("Tied things were put in random order.",) if _has_ties(answers) else ()
        return rankings_result(
            self,
            fit,
            score,
            1 / np.sqrt(information),
            {},
            notes,
            params={"worth": reached.worth},
            trace=trace,
            converged=converged,
        )


def _in_order(answers: Rankings, seed: int) -> tuple[Integers, Integers]:
    """Return the things of every answer from best to worst, and how many are left at each."""
    random = np.random.default_rng(seed).random(answers.n_elements)
    order = np.lexsort((random, answers.rank, answers.answer))
    place = np.arange(answers.n_elements) - np.repeat(answers.starts[:-1], answers.sizes)
    return answers.thing[order].astype(np.int64), np.repeat(answers.sizes, answers.sizes) - place


def _left_over(worth: Floats, left: Integers) -> Floats:
    """Return the summed worth of the things that are left at every choice: (element)."""
    total = np.concatenate([[0.0], np.cumsum(worth)])
    here = np.arange(len(worth))
    return np.maximum(total[here + left] - total[here], 1e-300)


def _so_far(value: Floats, left: Integers) -> Floats:
    """Return the sum of values of an answer's choices up to each element: (element)."""
    total = np.cumsum(value)
    first = np.maximum.accumulate(
        np.where(np.concatenate([[True], left[1:] >= left[:-1]]), np.arange(len(left)), 0)
    )
    return total - total[first] + value[first]


def _information(worth: Floats, thing: Integers, left: Integers, n_things: int) -> Floats:
    """Return the curvature of the log likelihood along every score: (thing)."""
    rest = _left_over(worth[thing], left)
    once, twice = 1 / rest, 1 / rest**2
    once[left == 1] = twice[left == 1] = 0.0
    mine = worth[thing]
    total = mine * _so_far(once, left) - mine**2 * _so_far(twice, left)
    return np.bincount(thing, np.maximum(total, 0), n_things).astype(np.float64)


def _has_ties(answers: Rankings) -> bool:
    order = np.lexsort((answers.rank, answers.answer))
    rank, answer = answers.rank[order], answers.answer[order]
    return bool(((rank[1:] == rank[:-1]) & (answer[1:] == answer[:-1])).any())
