"""What the others say: the belief about an item without one annotator's own labels, or without two.

Whoever is compared with a consensus should have no vote in it. Under a model with a hidden truth,
labels add logarithms to an item's score, and to leave somebody out is to take theirs away again:
exact for the crowd as it was fitted. Under votes, labels add their weight, and leaving out takes
the vote away. Gold stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .._probability import TIE, log_normalize, normalize, safe_log
from .._relation import Array, Floats, Integers
from ..aggregation import EMAggregator
from ..annotations import Annotations
from ..engine import Local
from ..registry import aggregators
from ..result import Aggregation

__all__ = ["Others", "Record", "heard_others", "muted", "others"]

_CELLS = 2**18  # numbers to hold at a time


@dataclass(frozen=True, eq=False)
class Others:
    """Beliefs about items from which labels can be taken away."""

    annotations: Annotations
    score: Floats  # (item, class): what all labels of an item add up to
    adds: Callable[[Integers], Floats]  # places of annotations → (annotation, class)
    is_log: bool  # whether scores are logarithms, or else weights
    gold: Integers | None = None  # (item): the known class, or -1
    heard: npt.NDArray[np.bool_] | None = None  # (annotation): whether others have a say

    def pieces(self) -> Iterator[slice]:
        """Yield ranges of annotations, small enough to work on at once, items never cut."""
        annotations = self.annotations
        step = max(_CELLS // max(annotations.n_classes, 1), annotations.n_annotators)
        cuts = np.searchsorted(annotations.index, np.arange(0, len(annotations), step), side="left")
        for first, last in pairwise(
            np.unique([*annotations.index[cuts], len(annotations)]).tolist()
        ):
            yield slice(first, last)

    def without(self, rows: slice) -> Floats:
        """Return the belief about the item of every annotation without its annotator's labels.

        The rows have to hold all labels of their items: (annotation, class).
        """
        positions = np.arange(rows.start, rows.stop)
        item, annotator = self.item[rows], self.annotations.annotator[rows]
        own = self.adds(positions)
        again = (item[1:] == item[:-1]) & (annotator[1:] == annotator[:-1])
        if again.any():  # somebody labelled an item more than once: all of it is taken away
            group = np.concatenate([[0], np.cumsum(~again)])
            starts = np.flatnonzero(np.concatenate([[True], ~again]))
            own = np.add.reduceat(own, starts, axis=0)[group]
        return self._believed(item, self.score[item] - own)

    def without_pair(self, one: Integers, other: Integers) -> Floats:
        """Return beliefs without two labels of the same item, given by place: (pair, class)."""
        item = self.item[one]
        return self._believed(item, self.score[item] - self.adds(one) - self.adds(other))

    @cached_property
    def record(self) -> Record:
        """How every annotator did against the consensus of the others."""
        return _record(self)

    @cached_property
    def item(self) -> Array:
        """The item of every annotation."""
        return self.annotations.item

    def _believed(self, item: Array, score: Floats) -> Floats:
        if self.is_log:
            score -= score.max(axis=1, keepdims=True)
            posterior = log_normalize(score)[1]
        else:
            # What is left of a vote that was taken away is a rounding error.
            posterior = normalize(np.where(score > TIE, score, 0.0))
        if self.gold is not None:
            known = np.flatnonzero(self.gold[item] >= 0)
            posterior[known] = np.eye(posterior.shape[1])[self.gold[item[known]]]
        return posterior


def others(result: Aggregation, gold: Integers | None = None) -> Others:
    """Return the beliefs of a result, from which labels can be taken away."""
    annotations, params = result.annotations, result.params
    method: Any = aggregators.create(result.method)
    n_classes = annotations.n_classes
    table = getattr(params, "log_given", None)
    parts = annotations.parts(Local().cut(annotations))
    if isinstance(table, np.ndarray) and table.shape[1] == n_classes:
        score = np.concatenate([method.log_joint(part, params) for part in parts])

        def given(positions: Integers) -> Floats:
            cell = (
                annotations.annotator[positions].astype(np.int64) * n_classes
                + annotations.label[positions]
            )
            return table[cell]

        return Others(annotations, score, given, True, gold)
    few = np.zeros(0, dtype=np.int64)
    if params is not None and method.label_probabilities(params, few, few) is not None:
        is_em = isinstance(method, EMAggregator)
        item = annotations.item

        def likely(positions: Integers) -> Floats:
            return safe_log(_chances(method, params, annotations, item, positions))

        score = (
            np.concatenate([method.log_joint(part, params) for part in parts])
            if is_em
            else safe_log(result.posterior)
        )
        if score.shape[1] != n_classes:
            score = safe_log(result.posterior)
        return Others(annotations, score, likely, True, gold)
    weight = getattr(params, "weight", np.ones(annotations.n_annotators))

    def votes(positions: Integers) -> Floats:
        return _votes(
            weight[annotations.annotator[positions]], annotations.label[positions], n_classes
        )

    score = np.concatenate(
        [
            part.score(weight[part.annotator])
            - part.by_item(np.minimum(weight[part.annotator], 0))[:, None]
            for part in parts
        ]
    )
    return Others(annotations, score, votes, bool(getattr(method, "log_odds", False)), gold)


def muted(
    result: Aggregation,
    annotations: Annotations,
    loud: npt.NDArray[np.bool_],
    gold: Integers | None = None,
) -> Others:
    """Return the beliefs of a result on the labels of some, by which everybody can be judged.

    `loud` says of every annotator whether the result has heard them.
    """
    view = others(result)
    has_say = loud[annotations.annotator]
    position = np.cumsum(has_say) - 1

    def adds(positions: Integers) -> Floats:
        out = np.zeros((len(positions), annotations.n_classes))
        mine = has_say[positions]
        out[mine] = view.adds(position[positions[mine]])
        return out

    heard = view.annotations.labels_per_item[annotations.item] > has_say
    if gold is not None:
        heard |= gold[annotations.item] >= 0
    return Others(annotations, view.score, adds, view.is_log, gold, heard)


def _chances(
    method: Any, params: Any, annotations: Annotations, item: Array, positions: Integers
) -> Floats:
    """Return how probable labels are for every truth, a few at a time: (annotation, class)."""
    out = np.empty((len(positions), annotations.n_classes))
    step = max(1, _CELLS // annotations.n_classes**2)
    for first in range(0, len(positions), step):
        now = positions[first : first + step]
        chances = method.label_probabilities(params, item[now], annotations.annotator[now])
        out[first : first + step] = chances[np.arange(len(now)), :, annotations.label[now]]
    return out


def _votes(weight: Floats, label: Array, n_classes: int) -> Floats:
    """Return what votes add: their weight to their class; below zero, to all others instead."""
    out = np.zeros((len(weight), n_classes))
    out += -np.minimum(weight, 0)[:, None]
    out[np.arange(len(weight)), label] += weight
    return out


def heard_others(annotations: Annotations, gold: Integers | None = None) -> npt.NDArray[np.bool_]:
    """Return whether the item of every annotation has a label by somebody else, or gold."""
    item = annotations.item
    heard = (annotations.labels_per_item > 1)[item]
    own = (item[1:] == item[:-1]) & (annotations.annotator[1:] == annotations.annotator[:-1])
    if own.any():
        group = np.concatenate([[0], np.cumsum(~own)])
        heard = annotations.labels_per_item[item] > np.bincount(group)[group]
    return heard if gold is None else heard | (gold[item] >= 0)


@dataclass(frozen=True, eq=False)
class Record:
    """How annotators did where somebody else was heard.

    Attributes
    ----------
    counts
        Labels by truth as the others see it: (annotator, true class, given class).
    credit
        For every annotation 1 where the others' best class was named; a tie between m counts 1/m;
        NaN where nobody else was heard.
    certainty
        For every annotator, how sure the others were of their best class, in the mean.
    """

    counts: Floats  # (annotator, true class, given class)
    credit: Floats  # (annotation)
    certainty: Floats  # (annotator)

    @property
    def scored(self) -> Floats:
        """How many labels count: (annotator)."""
        return np.round(self.counts.sum(axis=(1, 2)))


def _record(others: Others) -> Record:
    annotations, n_classes = others.annotations, others.annotations.n_classes
    n_cells = annotations.n_annotators * n_classes
    heard = heard_others(annotations, others.gold) if others.heard is None else others.heard
    counts = np.zeros((n_cells, n_classes))
    credit = np.full(len(annotations), np.nan)
    sure = np.zeros(annotations.n_annotators)
    for rows in others.pieces():
        posterior = others.without(rows)[heard[rows]]
        positions = np.arange(rows.start, rows.stop)[heard[rows]]
        label, annotator = (
            annotations.label[positions],
            annotations.annotator[positions].astype(np.int64),
        )
        cell = annotator * n_classes + label
        for true in range(n_classes):
            counts[:, true] += np.bincount(cell, posterior[:, true], minlength=n_cells)
        best = posterior.max(axis=1)
        ties = (posterior >= best[:, None] - TIE).sum(axis=1)
        mine = posterior[np.arange(len(label)), label] >= best - TIE
        credit[positions] = mine / ties
        sure += np.bincount(annotator, best, minlength=annotations.n_annotators)
    given = counts.reshape(-1, n_classes, n_classes).swapaxes(1, 2)
    with np.errstate(invalid="ignore"):
        certainty = sure / np.round(given.sum(axis=(1, 2)))
    return Record(given, credit, certainty)
