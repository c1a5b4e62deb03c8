"""Karger, Oh & Shah (2011): messages between items and annotators, for two classes.

Labels are signs, `sign[i, a]`. An annotator tells each item how far they can be trusted, judged
by their other items; an item tells each annotator which way it leans, judged by its other
annotators:

    lean[i to a] = sum over the others b of i: sign[i, b] * trust[b to i]
    trust[a to i] = sum over the other items j of a: sign[j, a] * lean[j to a]

After some rounds an item's class is the sign of the sum of `sign * trust`. Gold items lean to
their class whatever others say. The two classes could change places; the side on which most
votes stand is taken. Where all messages to an item are zero, plain votes decide.

The first messages are all one by default, so that a run repeats whatever the names; the paper
draws them from Normal(1, 1). On sparse random designs the rule comes near the best possible; real
data with uneven loads may defeat it.

    D. R. Karger, S. Oh, D. Shah. Iterative learning for reliable crowdsourcing systems.
    NeurIPS 2011
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from .._relation import Array, Floats, Integers
from ..annotations import Annotations
from ..params import Count
from ..result import Aggregation
from ._base import Fit, first_best, share
from ._votes import Found, WeightedVote, Weights, record_against

__all__ = ["Kos"]

_ZERO = 1e-9  # messages are around one; what is smaller is rounding


class _Edges(NamedTuple):
    """Who labelled what, one edge for each pair; repeated labels add up."""

    item: Integers  # (edge)
    annotator: Array  # (edge)
    sign: Floats  # (edge): labels of the second class less labels of the first
    n_items: int
    n_annotators: int

    def by_item(self, value: Floats) -> Floats:
        return np.bincount(self.item, value, self.n_items).astype(float)

    def by_annotator(self, value: Floats) -> Floats:
        return np.bincount(self.annotator, value, self.n_annotators).astype(float)


@dataclass(frozen=True, kw_only=True)
class Kos(WeightedVote):
    """Message passing between items and annotators; two classes only.

    Parameters
    ----------
    max_iter
        Rounds of messages.
    begin
        The first messages: all `ones`, or `random` around one, by the seed.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Kos().fit(annotations).labels.tolist()
    ['0', '1']
    """

    additive: ClassVar[bool] = False
    most_classes: ClassVar[int] = 2

    max_iter: Count = 10
    begin: Literal["ones", "random"] = "ones"

    def infer(self, fit: Fit) -> Aggregation:
        weights, posterior = self._solve(fit)
        return self.conclude(fit, posterior, first_best(posterior), params=weights)

    def weigh(self, fit: Fit) -> Found:
        return Found(self._solve(fit)[0])

    def _solve(self, fit: Fit) -> tuple[Weights, Floats]:
        """Return what annotators weigh for items elsewhere, and the posterior of these items."""
        edges = _edges(fit.annotations)
        trust, weight = self._messages(fit, edges)
        posterior = _belief(edges, trust, fit.annotations)
        record = record_against(fit, posterior)
        return Weights(weight, record.average_others(record.accuracy)), posterior

    def _messages(self, fit: Fit, edges: _Edges) -> tuple[Floats, Floats]:
        """Return the last messages to items, and what annotators would tell an item elsewhere."""
        trust = np.ones(len(edges.sign))
        if self.begin == "random":
            trust += np.random.default_rng(fit.seed).standard_normal(len(trust))
        gold = np.full(fit.annotations.n_items, -1) if fit.gold is None else fit.gold
        known = np.flatnonzero(gold[edges.item] >= 0)
        truth = 2.0 * gold[edges.item[known]] - 1
        for _ in range(self.max_iter):
            vote = edges.sign * trust
            lean = edges.by_item(vote)[edges.item] - vote
            lean[known] = truth * (_size(lean) or 1.0)
            told = edges.sign * lean
            weight = edges.by_annotator(told)
            trust = weight[edges.annotator] - told
            size = _size(trust) or 1.0
            trust, weight = trust / size, weight / size
        trust[np.abs(trust) < _ZERO] = 0
        score = edges.by_item(edges.sign * trust)
        side = np.where(np.abs(score) < _ZERO, 0, np.sign(score))
        turned = -1.0 if side @ edges.by_item(edges.sign) < 0 else 1.0
        return turned * trust, turned * weight


def _edges(annotations: Annotations) -> _Edges:
    item = annotations.item.astype(np.int64)
    sign = np.where(annotations.label == 1, 1.0, -1.0)
    new = np.ones(len(item), dtype=bool)  # rows are sorted by item, then annotator
    new[1:] = (item[1:] != item[:-1]) | (annotations.annotator[1:] != annotations.annotator[:-1])
    first = np.flatnonzero(new)
    if len(first) < len(item):
        sign = np.add.reduceat(sign, first)
    return _Edges(
        item[first],
        annotations.annotator[first],
        sign,
        annotations.n_items,
        annotations.n_annotators,
    )


def _belief(edges: _Edges, trust: Floats, annotations: Annotations) -> Floats:
    """Return the share of trust on either side: (item, class)."""
    vote = edges.sign * trust
    sides = [edges.by_item(np.maximum(side, 0)) for side in (-vote, vote)]
    posterior = np.stack(sides, axis=1)[:, : annotations.n_classes]
    silent = posterior.sum(axis=1) == 0
    posterior[silent] = annotations.votes()[silent]
    return share(posterior)


def _size(message: Floats) -> float:
    """Return the root mean square of messages."""
    return float(np.sqrt(np.mean(message**2))) if len(message) else 0.0
