"""Rankings: scores of things from the orders in which annotators put them.

Borda's count averages the places of a thing; Plackett and Luce see a ranking as choices, the best
thing first, then the best of the rest. Shared with `bradley_terry` is the table of things. Things
fall into groups that nothing compares, and scores of two groups have no common scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..answers.rankings import Pairs, Rankings
from ..base.arrays import Array, Floats, Integers
from ..base.iteration import iterate, objective_settles
from ..method import FitContext, Method
from ..params import Count, NonNegative, Positive
from .aggregation import AnswerAggregation


def rankings_result(
    method: Method[Rankings, AnswerAggregation],
    fit: FitContext[Rankings],
    score: Floats,
    deviation: Floats,
    annotators: dict[str, Array],
    notes: tuple[str, ...] = (),
    **settings: Any,
) -> AnswerAggregation:
    """Return the consensus of scores and their standard deviations: (thing).

    Things in groups that nothing compares have no common scale: they are ranked within, and scores
    of every group have mean zero.
    """
    answers: Rankings = fit.answers
    pairs = answers.pairs()
    group, n_groups = groups(pairs, answers.n_things)
    n_answers = np.bincount(answers.thing, minlength=answers.n_things)
    size = np.bincount(group, n_answers > 0, n_groups)
    mean = np.bincount(group, score * (n_answers > 0), n_groups) / np.maximum(size, 1)
    score = np.where(n_answers > 0, score - mean[group], np.nan)
    order = np.lexsort((np.arange(len(score)), -np.nan_to_num(score, nan=-np.inf), group))
    place = np.empty(len(score), dtype=np.int64)
    group_start = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=n_groups))])
    place[order] = np.arange(len(score)) - group_start[group[order]] + 1
    right = pairs.outcome == 1
    better, worse = (
        np.where(right, pairs.right, pairs.left),
        np.where(right, pairs.left, pairs.right),
    )
    untied = pairs.outcome < 2
    wins, losses = (
        np.bincount(side[untied], minlength=answers.n_things) for side in (better, worse)
    )
    columns: dict[str, Array] = {
        "thing": answers.things,
        "score": score,
        "low": score - 1.96 * deviation,
        "high": score + 1.96 * deviation,
        "rank": place,
        "n": n_answers,
        "wins": wins,
        "losses": losses,
        "group": group + 1,
        "confidence": _above_next(score, deviation, order, group),
    }
    if n_groups > 1:
        notes = (
            *notes,
            f"There are {n_groups} groups of things that no answer compares: ranks are within a "
            "group, and scores of two groups cannot be compared.",
        )
    return AnswerAggregation.of(method, fit, columns, annotators, notes=notes, **settings)


def groups(pairs: Pairs, n_things: int) -> tuple[Integers, int]:
    """Return the connected group of every thing, the largest first, and their number."""
    links = np.ones(len(pairs.left))
    matrix = sparse.coo_array((links, (pairs.left, pairs.right)), shape=(n_things, n_things))
    n_groups, group = connected_components(matrix, directed=False)
    size = np.bincount(group, minlength=n_groups)
    first = np.full(n_groups, n_things)
    np.minimum.at(first, group, np.arange(n_things))
    order = np.lexsort((first, -size))
    number = np.empty(n_groups, dtype=np.int64)
    number[order] = np.arange(n_groups)
    return number[group], int(n_groups)


def _above_next(score: Floats, deviation: Floats, order: Integers, group: Integers) -> Floats:
    """Return the probability that a thing is better than the next one in its group."""
    from scipy.special import ndtr

    out = np.full(len(score), np.nan)
    above, below = order[:-1], order[1:]
    within = group[above] == group[below]
    above, below = above[within], below[within]
    spread = np.sqrt(deviation[above] ** 2 + deviation[below] ** 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        out[above] = ndtr((score[above] - score[below]) / spread)
    return out


@dataclass(frozen=True, kw_only=True)
class Borda(Method[Rankings, AnswerAggregation]):
    """The mean share of the other things that a thing was ranked above; ties count half.

    Borda's count: the mean share of the other things that a thing was ranked above; ties half.

        score[thing] = mean share of the other things it is ranked above

    When it fails: Where things are not compared with the same others: one that met only weak rivals
    scores high. Annotators are not distinguished.
    """

    def infer(self, fit: FitContext[Rankings]) -> AnswerAggregation:
        answers: Rankings = fit.answers
        pairs, n = answers.pairs(), answers.n_things
        won = np.where(pairs.outcome == 2, 0.5, pairs.outcome == 0)
        above = np.bincount(pairs.left, won, n) + np.bincount(pairs.right, 1 - won, n)
        n_pairs = np.bincount(pairs.left, minlength=n) + np.bincount(pairs.right, minlength=n)
        with np.errstate(invalid="ignore", divide="ignore"):
            score = np.where(n_pairs > 0, above / n_pairs, 0.5)
            deviation = np.sqrt(
                np.maximum(score * (1 - score), 0.25 / (n_pairs + 1)) / (n_pairs + 1)
            )
        return rankings_result(self, fit, score=score, deviation=deviation, annotators={})


class _Worths(NamedTuple):
    worth: Floats  # (thing)
    objective: float = np.nan


@dataclass(frozen=True, kw_only=True)
class PlackettLuce(Method[Rankings, AnswerAggregation]):
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

    def infer(self, fit: FitContext[Rankings]) -> AnswerAggregation:
        answers: Rankings = fit.answers
        thing, n_left = _in_order(answers, fit.seed)
        choices = np.bincount(thing[n_left > 1], minlength=answers.n_things) + self.prior
        start = _Worths(np.ones(answers.n_things))

        def advance(last: _Worths) -> _Worths:
            inverse = 1 / _left_over(last.worth[thing], n_left)  # (element)
            inverse[n_left == 1] = 0.0  # nothing is chosen there
            total = _so_far(inverse, n_left)
            worth = choices / (np.bincount(thing, total, answers.n_things) + self.prior)
            log_worth = np.log(worth)
            log_chance = log_worth[thing] - np.log(_left_over(worth[thing], n_left))
            prior = self.prior * float((log_worth - worth).sum())
            return _Worths(worth, float(log_chance[n_left > 1].sum()) + prior)

        reached, trace, converged = iterate(
            start,
            advance,
            objective_settles(self.tol),
            max_iter=self.max_iter,
            progress=fit.progress,
        )
        score = np.log(reached.worth)
        information = _information(reached.worth, thing, n_left, answers.n_things) + self.prior
        notes = ("Tied things were put in random order.",) if _has_ties(answers) else ()
        return rankings_result(
            self,
            fit,
            score=score,
            deviation=1 / np.sqrt(information),
            annotators={},
            notes=notes,
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


def _left_over(worth: Floats, n_left: Integers) -> Floats:
    """Return the summed worth of the things that are left at every choice: (element)."""
    total = np.concatenate([[0.0], np.cumsum(worth)])
    element = np.arange(len(worth))
    return np.maximum(total[element + n_left] - total[element], 1e-300)


def _so_far(value: Floats, n_left: Integers) -> Floats:
    """Return the sum of values of an answer's choices up to each element: (element)."""
    total = np.cumsum(value)
    start = np.maximum.accumulate(
        np.where(np.concatenate([[True], n_left[1:] >= n_left[:-1]]), np.arange(len(n_left)), 0)
    )
    return total - total[start] + value[start]


def _information(worth: Floats, thing: Integers, n_left: Integers, n_things: int) -> Floats:
    """Return the curvature of the log likelihood along every score: (thing)."""
    remaining = _left_over(worth[thing], n_left)
    once, twice = 1 / remaining, 1 / remaining**2
    once[n_left == 1] = twice[n_left == 1] = 0.0
    own = worth[thing]
    total = own * _so_far(once, n_left) - own**2 * _so_far(twice, n_left)
    return np.bincount(thing, np.maximum(total, 0), n_things).astype(np.float64)


def _has_ties(answers: Rankings) -> bool:
    order = np.lexsort((answers.rank, answers.answer))
    rank, answer = answers.rank[order], answers.answer[order]
    return bool(((rank[1:] == rank[:-1]) & (answer[1:] == answer[:-1])).any())
