"""Leave-one-annotator-out posteriors: the consensus on an item without an annotator's own labels.

Annotators are compared with a consensus in which they have no vote. In a latent-truth model, labels
add log-likelihoods to the score of an item, so leaving out means subtracting: exact for the fitted
parameters. In voting, labels add their weight. Gold labels stay fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..aggregation.aggregation import ClassAggregation
from ..aggregation.em import EM
from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats, Integers
from ..base.engine import Local
from ..base.probability import TIE, log_normalize, normalize, safe_log
from ..metrics.statistics import repeats_previous
from ..registry import aggregators

_CELLS = 2**18  # numbers in memory at a time


@dataclass(frozen=True, eq=False)
class PeerComparison:
    """Annotators compared with the consensus of others.

    Attributes
    ----------
    counts
        Labels by true class under the posterior of the others: (annotator, true, given class).
    credit
        For every annotation 1 if it is the others' best class; a tie between m counts 1/m; NaN
        where there is no other label.
    certainty
        For every annotator the others' mean probability of their best class.
    scored
        For every annotator how many labels count.
    """

    counts: Floats  # (annotator, true class, given class)
    credit: Floats  # (annotation)
    certainty: Floats  # (annotator)
    scored: Floats  # (annotator)

    def of(self, labels: npt.NDArray[np.bool_], annotators: npt.NDArray[np.bool_]) -> Self:
        """Return the comparison of these labels and annotators alone; of others nothing counts."""
        return replace(
            self,
            counts=self.counts * annotators[:, None, None],
            credit=np.where(labels, self.credit, np.nan),
            certainty=np.where(annotators, self.certainty, np.nan),
            scored=self.scored * annotators,
        )


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Scores of items from which labels can be subtracted."""

    annotations: Annotations
    score: Floats  # (item, class): the sum over all labels of an item
    contribution: Callable[[Integers], Floats]  # positions of annotations → (annotation, class)
    is_log: bool  # whether scores are logarithms, or else weights
    gold: Integers | None = None  # (item): the gold class, or -1
    has_others: npt.NDArray[np.bool_] | None = None  # (annotation): whether others labelled it

    def without(self, rows: slice) -> Floats:
        """Return posteriors without the labels of the annotator: (annotation, class).

        The rows have to hold all labels of their items.
        """
        item = self.item[rows]
        own = self.contribution(np.arange(rows.start, rows.stop))
        repeated = repeats_previous(self.annotations)[rows]
        if repeated.any():  # repeated labels of an annotator are subtracted together
            own = np.add.reduceat(own, np.flatnonzero(~repeated), axis=0)[np.cumsum(~repeated) - 1]
        return self._posterior(item, self.score[item] - own)

    def without_pair(self, left: Integers, right: Integers) -> Floats:
        """Return posteriors without two labels of the same item, by position: (pair, class)."""
        item = self.item[left]
        own = self.contribution(left) + self.contribution(right)
        return self._posterior(item, self.score[item] - own)

    def chunks(self) -> Iterator[tuple[Integers, Floats]]:
        """Yield annotations with another label, by position, and the posteriors of the others.

        A limited number of annotations at a time, without cutting an item.
        """
        annotations, n_labels = self.annotations, len(self.annotations)
        has_others = self.has_others
        if has_others is None:
            has_others = has_other_labels(annotations, self.gold)
        index = annotations.index
        step = max(_CELLS // max(annotations.n_classes, 1), annotations.n_annotators)
        cuts = np.searchsorted(index, np.arange(0, n_labels, step), side="left")
        for first, last in pairwise(np.unique([*index[cuts], n_labels]).tolist()):
            compared = has_others[first:last]
            yield np.arange(first, last)[compared], self.without(slice(first, last))[compared]

    @cached_property
    def comparison(self) -> PeerComparison:
        """Every annotator compared with the consensus of the others."""
        annotations, n_classes = self.annotations, self.annotations.n_classes
        n_cells = annotations.n_annotators * n_classes
        counts = np.zeros((n_cells, n_classes))
        credit = np.full(len(annotations), np.nan)
        certainty = np.zeros(annotations.n_annotators)
        for positions, posterior in self.chunks():
            label = annotations.label[positions]
            annotator = annotations.annotator[positions].astype(np.int64)
            for true in range(n_classes):
                cell = annotator * n_classes + label
                counts[:, true] += np.bincount(cell, posterior[:, true], minlength=n_cells)
            best = posterior.max(axis=1)
            ties = (posterior >= best[:, None] - TIE).sum(axis=1)
            credit[positions] = (posterior[np.arange(len(label)), label] >= best - TIE) / ties
            certainty += np.bincount(annotator, best, minlength=annotations.n_annotators)
        by_truth = counts.reshape(-1, n_classes, n_classes).swapaxes(1, 2)
        scored = np.round(by_truth.sum(axis=(1, 2)))
        with np.errstate(invalid="ignore"):
            certainty /= scored
        return PeerComparison(by_truth, credit, certainty, scored)

    @cached_property
    def item(self) -> Array:
        """The item of every annotation."""
        return self.annotations.item

    def _posterior(self, item: Array, score: Floats) -> Floats:
        if self.is_log:
            score -= score.max(axis=1, keepdims=True)
            posterior = log_normalize(score)[1]
        else:
            # A subtracted vote leaves a rounding error.
            posterior = normalize(np.where(score > TIE, score, 0.0))
        if self.gold is not None:
            has_gold = np.flatnonzero(self.gold[item] >= 0)
            posterior[has_gold] = np.eye(posterior.shape[1])[self.gold[item[has_gold]]]
        return posterior


def leave_one_out(result: ClassAggregation, gold: Integers | None = None) -> LeaveOneOut:
    """Return the item scores of a result, from which labels can be subtracted."""
    annotations, params = result.answers, result.params
    method: Any = aggregators.create(result.method)
    n_classes = annotations.n_classes
    table = getattr(params, "log_given", None)
    parts = annotations.parts(Local().cut(annotations))

    def log_joint() -> Floats:
        return np.concatenate([method.log_joint(part, params) for part in parts])

    if isinstance(table, np.ndarray) and table.shape[1] == n_classes:

        def log_given(positions: Integers) -> Floats:
            annotator = annotations.annotator[positions].astype(np.int64)
            return table[annotator * n_classes + annotations.label[positions]]

        return LeaveOneOut(annotations, log_joint(), log_given, is_log=True, gold=gold)
    none = np.zeros(0, dtype=np.int64)
    if params is not None and method.label_probabilities(params, none, none) is not None:
        item = annotations.item

        def log_likelihood(positions: Integers) -> Floats:
            out = np.empty((len(positions), n_classes))
            step = max(1, _CELLS // n_classes**2)
            for start in range(0, len(positions), step):
                part = positions[start : start + step]
                likelihood = method.label_probabilities(
                    params, item[part], annotations.annotator[part]
                )
                out[start : start + step] = likelihood[
                    np.arange(len(part)), :, annotations.label[part]
                ]
            return safe_log(out)

        score = log_joint() if isinstance(method, EM) else safe_log(result.posterior)
        if score.shape[1] != n_classes:
            score = safe_log(result.posterior)
        return LeaveOneOut(annotations, score, log_likelihood, is_log=True, gold=gold)
    weight = getattr(params, "weight", np.ones(annotations.n_annotators))

    def votes(positions: Integers) -> Floats:
        """Return the weight of votes for their class; negative weights go to all others."""
        own = weight[annotations.annotator[positions]]
        out = np.repeat(-np.minimum(own, 0)[:, None], n_classes, axis=1)
        out[np.arange(len(own)), annotations.label[positions]] += own
        return out

    score = np.concatenate(
        [
            part.votes(weight[part.annotator])
            - part.by_item(np.minimum(weight[part.annotator], 0))[:, None]
            for part in parts
        ]
    )
    is_log = bool(getattr(method, "log_odds", False))
    return LeaveOneOut(annotations, score, votes, is_log=is_log, gold=gold)


def leave_one_out_votes(annotations: Annotations, gold: Integers | None = None) -> LeaveOneOut:
    """Return the votes on every item, from which labels can be subtracted."""
    classes = np.eye(annotations.n_classes)

    def votes(positions: Integers) -> Floats:
        return classes[annotations.label[positions]]

    return LeaveOneOut(annotations, annotations.votes(), votes, is_log=False, gold=gold)


def leave_subset_out(
    result: ClassAggregation,
    annotations: Annotations,
    included: npt.NDArray[np.bool_],
    gold: Integers | None = None,
) -> LeaveOneOut:
    """Return the scores of a result on the labels of some annotators, to compare all with.

    `included` marks the annotators whose labels the result was fitted to.
    """
    fitted = leave_one_out(result)
    counted = included[annotations.annotator]
    position = np.cumsum(counted) - 1

    def contribution(positions: Integers) -> Floats:
        out = np.zeros((len(positions), annotations.n_classes))
        own = counted[positions]
        out[own] = fitted.contribution(position[positions[own]])
        return out

    has_others = fitted.annotations.labels_per_item[annotations.item] > counted
    if gold is not None:
        has_others |= gold[annotations.item] >= 0
    return LeaveOneOut(
        annotations,
        fitted.score,
        contribution,
        is_log=fitted.is_log,
        gold=gold,
        has_others=has_others,
    )


def has_other_labels(
    annotations: Annotations, gold: Integers | None = None
) -> npt.NDArray[np.bool_]:
    """Return whether the item of every annotation has a label by another annotator, or gold."""
    item = annotations.item
    group = np.cumsum(~repeats_previous(annotations)) - 1
    has_others = annotations.labels_per_item[item] > np.bincount(group)[group]
    return has_others if gold is None else has_others | (gold[item] >= 0)
