"""How sure what was inferred is, item by item: which items are in doubt, and how many are wrong.

classes       calibrated certainty; labels to give again until the target is expected
numbers       an item is wide if it has three answers or more and these scatter more than twice
              as much as usual
other kinds   an item is disputed if it has three answers or more, which differ as much as
              answers to different items do
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..aggregation.aggregation import Aggregation, ClassAggregation, NumberAggregation
from ..base.arrays import Floats, Integers
from ..base.names import Names
from ..metrics import Agreement, Evaluation
from ..pages.sections import CONFIDENT
from ..planning.label_errors import Checked, LabelErrors, checked_errors, doubts, label_errors
from ..registry import aggregators
from ..result import Table

_WIDE = 2.0  # times the usual scatter
_DRAWN = 10  # most disputed items
_LEAST = 3  # answers of an item that can be wide or disputed


class Doubt:
    """What is in doubt, whatever the kind."""

    errors: LabelErrors | None = None
    ordered: ClassVar[bool] = False  # whether labels are certain within one step
    listed_as: ClassVar[str] = "relabel"  # what JSON calls the items to look at again

    @property
    def again(self) -> Integers:
        """Items to look at again, by code, the most doubtful first."""
        raise NotImplementedError

    @property
    def columns(self) -> Table:
        """What is said of every row of the items of the result."""
        return {}

    @property
    def forms(self) -> Mapping[str, Callable[[float], str]]:
        """How scores are written that are in units of the answers."""
        return {}


@dataclass(frozen=True, eq=False)
class LabelDoubt(Doubt):
    """How sure inferred labels are, how many are wrong, and which to give again.

    Attributes
    ----------
    result
        The inferred labels.
    cause
        Why annotators disagree on every item.
    gold
        Known labels that methods used.
    target
        The share of right labels to reach.
    evaluation
        Scores against known labels; `None` without any.
    checked
        Labels that were checked one by one, where gold is no random sample.
    has_camps
        Whether annotators fall into camps, so that further labels would not settle anything.
    """

    result: ClassAggregation
    cause: Names  # (item)
    gold: Mapping[str, str] = field(default_factory=dict)
    target: float = 0.95
    evaluation: Evaluation | None = None
    checked: Checked | None = None
    has_camps: bool = False

    @property
    def columns(self) -> Table:
        """How certain every label is, and why annotators disagree."""
        return {"certainty": self.certainty, "cause": self.cause}

    @property
    def ordered(self) -> bool:  # type: ignore[override]
        """Whether classes are in order, so that labels are certain within one step."""
        return self.result.answers.scale == "ordinal"

    @cached_property
    def certainty(self) -> Floats:
        """Confidence in every label; that it is right within one step, if classes are ordered.

        NaN where it cannot be told.
        """
        return _within_one_step(self.result) if self.ordered else self.result.confidence

    @cached_property
    def certainty_without_gold(self) -> Floats:
        """The same, without the factor that gold gives its temperature: alike in all fits."""
        result = self.result
        if not result.n_gold:
            return self.certainty
        method = aggregators.create(result.method)
        temperature = method.temperature(result.answers.labels_per_item)
        plain = replace(result, temperature=temperature)
        return _within_one_step(plain) if self.ordered else plain.confidence

    @cached_property
    def unchecked(self) -> Integers:
        """Labelled items without gold that can be judged, by code, the least certain first."""
        return self._open[~np.isnan(self.certainty[self._open])]

    @cached_property
    def _open(self) -> Integers:
        """Labelled items without gold, by code; after those that can be judged, all others."""
        answers = self.result.answers
        has_gold = np.array([item in self.gold for item in answers.items.tolist()], dtype=bool)
        open_items = (answers.labels_per_item > 0) & ~has_gold
        order = np.argsort(self.certainty, kind="stable")
        return order[open_items[order]]

    @cached_property
    def errors(self) -> LabelErrors:  # type: ignore[override]
        """How many labels are wrong."""
        if self.checked is not None:
            return checked_errors(self.certainty_without_gold[self._open], self.checked)
        return label_errors(self.certainty[self._open], **self.checks)

    @property
    def should_stop(self) -> bool:
        """Whether the labels are good enough, at the lower end of the interval."""
        return self.errors.reaches(self.target)

    @cached_property
    def again(self) -> Integers:
        """Items to label again, so that the target is expected to be reached."""
        nothing = np.zeros(0, dtype=np.int64)
        if self.should_stop or self.has_camps or not self.errors.n_items:
            return nothing
        doubt = doubts(self.certainty[self.unchecked], self.errors.expected)
        doubt_left = doubt.sum() - np.cumsum(doubt)
        allowed = (1 - self.target) * len(doubt)
        if doubt.sum() <= allowed:
            return nothing
        return self.unchecked[: int(np.argmax(doubt_left <= allowed)) + 1]

    @property
    def errors_after(self) -> LabelErrors:
        """How many labels are wrong outside the list to label again."""
        n_listed = len(self.again)
        if self.checked is not None:
            unlisted = self.unchecked[n_listed:]
            return checked_errors(self.certainty_without_gold[unlisted], self.checked)
        return label_errors(self.certainty[self.unchecked], n_listed, **self.checks)

    @property
    def checks(self) -> dict[str, Any]:
        """How many labels were checked against known ones, and how many were wrong."""
        if self.evaluation is None or self.ordered:
            return {"n_checked": self.result.n_gold, "n_wrong": self.result.gold_errors}
        right = self.evaluation.scores["accuracy"]
        n_checked = self.evaluation.n_scored
        wrong = 0 if right is None else round((1 - right.value) * n_checked)
        return {"n_checked": n_checked, "n_wrong": wrong}

    @cached_property
    def odd_items(self) -> dict[str, int]:
        """How many items have a split vote, and how many a label that nobody gave."""
        votes = self.result.answers.votes()
        most = votes.max(axis=1)
        tied = ((votes == most[:, None]).sum(axis=1) > 1) & (most > 0)
        label = self.result.label
        nobody = (label >= 0) & (most > 0) & (votes[np.arange(len(label)), label] == 0)
        counts = {"with a split vote": int(tied.sum())}
        counts["with a label that nobody gave"] = int(nobody.sum())
        return {reason: count for reason, count in counts.items() if count}


def _within_one_step(result: ClassAggregation) -> Floats:
    """Return the probability that labels are right within one step, NaN if unknown: (item)."""
    padded = np.pad(result.probabilities, ((0, 0), (1, 1)))
    near = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    certainty = near[np.arange(len(near)), np.maximum(result.label, 0)]
    return np.where(result.is_identifiable, certainty, np.nan)


@dataclass(frozen=True, eq=False)
class ValueDoubt(Doubt):
    """How far the numbers that items were given scatter."""

    result: NumberAggregation

    @property
    def columns(self) -> Table:
        """How far answers scatter."""
        return {"scatter": self.scatter}

    @cached_property
    def scatter(self) -> Floats:
        """Standard deviation of the answers on every item; NaN below two."""
        numbers, size = self.result.answers, self.result.answers.labels_per_item
        value = numbers.value - float(numbers.value.mean())
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.bincount(numbers.item, value, numbers.n_items) / size
            error = value - mean[numbers.item]
            squares = np.bincount(numbers.item, error**2, numbers.n_items)
            return np.where(size > 1, np.sqrt(squares / (size - 1)), np.nan)

    @cached_property
    def usual(self) -> float:
        """The scatter of answers on an ordinary item."""
        return float(np.nanmedian(self.scatter)) if np.isfinite(self.scatter).any() else math.nan

    @cached_property
    def again(self) -> Integers:
        """Items of three answers or more that scatter widely, by code, the widest first."""
        order = np.argsort(-np.nan_to_num(self.scatter), kind="stable")
        limit = _WIDE * self.usual * (1 + 1e-9)  # exactly twice as much is not more
        wide = (self.scatter > limit) & (self.result.answers.labels_per_item >= _LEAST)
        return order[wide[order]]

    @cached_property
    def variance(self) -> Floats:
        """Variance of answers on every item, shrunk to the mean as far as it varies by chance.

        The variance of n normal answers has a sampling variance of 2 σ⁴ / (n - 1).
        """
        size, square = self.result.answers.labels_per_item, self.scatter**2
        has_pairs = size > 1
        observed, n = square[has_pairs], size[has_pairs]
        mean = float(np.average(observed, weights=n - 1)) if has_pairs.any() else math.nan
        spread = float(observed.var()) if has_pairs.any() else 0.0
        by_chance = float((2 * observed**2 / (n + 1)).mean()) if has_pairs.any() else 0.0
        share_kept = max(1 - by_chance / spread, 0.0) if spread > 0 else 0.0
        return np.where(has_pairs, mean + share_kept * (square - mean), mean)

    @property
    def forms(self) -> Mapping[str, Callable[[float], str]]:
        """How errors are written, in units of the answers."""
        return dict.fromkeys(("mae", "rmse"), self.form)

    def form(self, value: float) -> str:
        """Return a value as text, with as many decimals for all."""
        return f"{value:.{self.decimals}f}"

    @cached_property
    def decimals(self) -> int:
        """How many decimals values are written with."""
        spread = float(self.result.answers.value.std())
        return 2 if spread == 0 else max(2 - math.floor(math.log10(spread)), 0)


@dataclass(frozen=True, eq=False)
class AnswerDoubt(Doubt):
    """How much answers to an item differ, and how sure the consensus is.

    Attributes
    ----------
    result
        The consensus.
    agreement
        Result of `agree`; `None` if no item has two answers.
    distance
        The mean distance of the answers to every item, NaN with fewer than two.
    errors
        How many marks are wrong, by their confidence; `None` where that is no probability.
    """

    listed_as: ClassVar[str] = "disputed"

    result: Aggregation
    agreement: Agreement | None
    distance: Floats  # (item)
    errors: LabelErrors | None = None

    @cached_property
    def again(self) -> Integers:
        """Items of three answers or more that differ as much as those to different items do."""
        if self.agreement is None:
            return np.zeros(0, dtype=np.int64)
        expected = self.agreement["expected"].value
        many = self.result.answers.labels_per_item >= _LEAST
        wide = (self.distance >= expected) & many & (expected > 0)
        return self._by_distance[wide[self._by_distance]]

    @property
    def most_disputed(self) -> Integers:
        """The items whose answers differ most, by code, at most ten."""
        order = self._by_distance
        return order[self.distance[order] > 0][:_DRAWN]

    @cached_property
    def _by_distance(self) -> Integers:
        """Items by distance, the largest first; of equal ones, those with more answers."""
        distance = np.nan_to_num(self.distance, nan=-1.0)
        return np.lexsort((-self.result.answers.labels_per_item, -distance))

    @property
    def less_certain(self) -> Integers:
        """Rows of the consensus with little confidence, the least first."""
        confidence: Floats = self.result.items["confidence"]
        order = np.argsort(confidence, kind="stable")
        return order[confidence[order] < CONFIDENT]
