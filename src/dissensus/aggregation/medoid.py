"""Medoid: the answer that is closest to the others, for answers of any kind with a distance.

Annotators have a relative error s[j]. The error of an answer is its mean distance to the other
answers to its item, weighted by 1 / s; relative to the mean error of the item, errors of an
annotator give s[j]. After twenty rounds the answer with the smallest error, shrunk towards what its
annotator's s[j] predicts, is the consensus. Its confidence is a softmax of minus these errors, with
equal answers added up.

    consensus[i] = argmin over answers y of i of Σ_a distance(y, answer of a) / s[a]

When it fails: With two answers per item both are equally near, and the annotators' errors decide.
It can only return an answer that somebody gave, also where a mixture would be better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..answers import Answers
from ..base.arrays import Floats, Integers
from ..method import FitContext, Method
from ..params import Count, NonNegative
from .aggregation import AnswerAggregation

_LEAST = 0.02  # mean error of an item
_PRIOR = 3.0  # pseudo-answers of an annotator
_SAME = 1e-12  # distance of answers that are equal
_DIGITS = 9  # of scores that are compared


@dataclass(frozen=True, kw_only=True)
class Medoid(Method[Answers, AnswerAggregation]):
    """The answer that is closest to the others, with annotators weighted by their errors.

    Parameters
    ----------
    rounds
        Number of times that errors and weights are computed; 1 is the plain medoid.
    shrinkage
        How many answers the error that an annotator is expected to make counts for.

    Examples
    --------
    >>> from dissensus.answers import Spans
    >>> spans = Spans.from_columns("aaa", "xyz", [0, 0, 3], [2, 3, 9])
    >>> Medoid().fit(spans).items["end"].tolist()
    [2]
    """

    rounds: Count = 20
    shrinkage: NonNegative = 2.0

    def infer(self, fit: FitContext[Answers]) -> AnswerAggregation:
        answers = fit.answers
        first, second = answers.within_item_pairs()
        distance = answers.distance(first, second)
        pairs = np.concatenate([first, second]), np.concatenate([second, first])
        distance = np.concatenate([distance, distance])
        item, annotator = answers.item.astype(np.int64), answers.annotator
        error = np.ones(answers.n_annotators)  # relative to the mean of all
        n_answers, sizes = answers.labels_per_annotator, answers.labels_per_item
        for _ in range(self.rounds - 1):
            off, mean = _errors(
                pairs, distance, weight=1 / error[annotator], item=item, n_items=answers.n_items
            )
            total = np.bincount(annotator, off / mean[item], minlength=len(error))
            error = (total + _PRIOR) / (n_answers + _PRIOR)
            error /= np.exp(np.log(error).mean())
        power = 1 if self.rounds == 1 else 2
        off, mean = _errors(
            pairs,
            distance,
            weight=1 / error[annotator] ** power,
            item=item,
            n_items=answers.n_items,
        )
        size = sizes[item]
        score = size * off + self.shrinkage * mean[item] * error[annotator]
        score = (score / (size + self.shrinkage)).round(_DIGITS)
        best = _smallest(answers, score, item)
        weight = np.exp(-(score - score[best][np.searchsorted(item[best], item)]) / mean[item])
        share = weight / np.bincount(item, weight, minlength=answers.n_items)[item]
        equal = distance < _SAME
        share = share + np.bincount(pairs[0][equal], share[pairs[1][equal]], minlength=len(share))
        return self._result(fit, best, np.minimum(share, 1.0), error)

    def _result(
        self, fit: FitContext[Answers], best: Integers, share: Floats, error: Floats
    ) -> AnswerAggregation:
        """Return the chosen answers as the consensus; on known items, the gold instead."""
        answers, gold = fit.answers, fit.gold
        is_best = np.zeros(len(answers), dtype=bool)
        is_best[best] = True
        is_best &= ~fit.known[answers.item]
        agreed = answers.keep(is_best)
        confidence = share[is_best]
        if gold is not None:
            sure = np.concatenate([confidence, np.ones(len(gold))])
            order = np.argsort(np.concatenate([agreed.item, gold.item]), kind="stable")
            agreed, confidence = agreed.merge(gold), sure[order]
        table, row = agreed.as_table()
        head = {"item": table.pop("item")}
        n_answers = answers.labels_per_item[agreed.item.astype(np.int64)[row]]
        columns = {"confidence": confidence[row], "n_answers": n_answers}
        quality = np.where(answers.labels_per_annotator > 0, 1 / error, np.nan)
        return AnswerAggregation.of(self, fit, head | table | columns, {"quality": quality})


def _smallest(answers: Answers, score: Floats, item: Integers) -> Integers:
    """Return the answer of every item with the smallest score; names do not decide ties."""
    lowest = np.full(answers.n_items, np.inf)
    np.minimum.at(lowest, item, score)
    least = score == lowest[item]
    tied = np.flatnonzero(least & (np.bincount(item, least)[item] > 1))
    mask = np.zeros(len(item), dtype=bool)
    mask[tied] = True
    rank = np.zeros(len(item), dtype=np.int64)
    texts = [repr(value) for value in answers.keep(mask).values()]
    rank[tied] = np.unique(texts, return_inverse=True)[1] if texts else 0
    rows = np.lexsort((rank, score, item))
    return rows[np.flatnonzero(np.diff(item[rows], prepend=-1))]


def _errors(
    pairs: tuple[Integers, Integers], distance: Floats, weight: Floats, item: Integers, n_items: int
) -> tuple[Floats, Floats]:
    """Return the mean distance of every answer to the others, and of every item."""
    first, second = pairs
    near = np.bincount(first, weight[second], minlength=len(item))
    total = np.bincount(first, weight[second] * distance, minlength=len(item))
    off: Floats = np.divide(total, near, out=np.zeros(len(item)), where=near > 0)
    total = np.bincount(item, weight, minlength=n_items)
    mean = np.bincount(item, weight * off, minlength=n_items) / np.where(total > 0, total, 1.0)
    return off, np.maximum(mean, _LEAST)
