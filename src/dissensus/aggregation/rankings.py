"""What methods for rankings share: groups that nothing compares, and the table of things."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..base.arrays import Array, Floats, Integers
from ..answers.rankings import Pairs, Rankings
from ..consensus_base import ConsensusContext, ConsensusMethod
from .aggregation import Consensus


def rankings_result(
    method: ConsensusMethod,
    fit: ConsensusContext,
    score: Floats,
    deviation: Floats,
    annotators: dict[str, Array],
    notes: tuple[str, ...] = (),
    **settings: Any,
) -> Consensus:
    """Return the consensus of scores and their standard deviations: (thing).

    Things in groups that nothing compares have no common scale: they are ranked within, and scores
    of every group have mean zero.
    """
    answers: Rankings = fit.answers
    pairs = answers.pairs()
    group, n_groups = groups(pairs, answers.n_things)
    used = np.bincount(answers.thing, minlength=answers.n_things)
    size = np.bincount(group, used > 0, n_groups)
    mean = np.bincount(group, score * (used > 0), n_groups) / np.maximum(size, 1)
    score = np.where(used > 0, score - mean[group], np.nan)
    order = np.lexsort((np.arange(len(score)), -np.nan_to_num(score, nan=-np.inf), group))
    place = np.empty(len(score), dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=n_groups))])
    place[order] = np.arange(len(score)) - first[group[order]] + 1
    right = pairs.outcome == 1
    better, worse = (
        np.where(right, pairs.right, pairs.left),
        np.where(right, pairs.left, pairs.right),
    )
    untied = pairs.outcome < 2
    wins, losses = (np.bincount(one[untied], minlength=answers.n_things) for one in (better, worse))
    columns: dict[str, Array] = {
        "thing": answers.things,
        "score": score,
        "low": score - 1.96 * deviation,
        "high": score + 1.96 * deviation,
        "rank": place,
        "n": used,
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
    return method.result(fit, columns, annotators, notes=notes, **settings)


def groups(pairs: Pairs, n_things: int) -> tuple[Integers, int]:
    """Return the connected group of every thing, the largest first, and their number."""
    ones = np.ones(len(pairs.left))
    links = sparse.coo_array((ones, (pairs.left, pairs.right)), shape=(n_things, n_things))
    n_groups, group = connected_components(links, directed=False)
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
