"""How right predictions are where the truth is known, with an interval for every score.

Where labels are classes (`_class_scores`):

    accuracy              the best class is the truth; a tie between m classes counts 1/m
    accuracy_as_labelled  the label given is the truth; undecided is wrong
    macro_f1              mean F1 of the classes that occur in the truth or in the labels given
    log_loss              mean of -log of the belief in the truth, with beliefs of at least 1e-15
    brier                 mean squared error of the beliefs, summed over classes: 0 to 2
    ece                   expected calibration error, 15 bins of equal width over all items

Where they are numbers (`_number_scores`):

    mae                   mean absolute error
    rmse                  root of the mean squared error
    pearson               correlation with the truth
    spearman              correlation of the ranks; values that are equal share the middle one

Intervals are percentiles of bootstrap samples of the items.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._names import Names, text
from .._relation import Floats, Integers, frozen
from ..aggregation.numeric.result import Estimation
from ..errors import DataError, OptionError
from ..result import Aggregation
from ._class_scores import CLASS_SCORES, class_scores, true_classes
from ._number_scores import NUMBER_SCORES, number_scores

__all__ = ["Evaluation", "Predictions", "Score", "Values", "as_predictions", "evaluate"]


@dataclass(frozen=True, eq=False)
class Predictions:
    """A label for every item, and perhaps a belief in every class."""

    items: Names
    classes: Names
    label: Integers  # (item): -1 where undecided
    posterior: Floats | None = None  # (item, class)

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, frozen(value))


@dataclass(frozen=True, eq=False)
class Values:
    """A number for every item."""

    items: Names
    value: Floats  # (item): NaN where there is none

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", frozen(self.value))


class Score(NamedTuple):
    """A score and its bootstrap interval; NaN bounds where nothing was resampled.

    A correlation with what does not vary is NaN altogether.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Evaluation:
    """The scores, and how many items they rest on.

    Attributes
    ----------
    scores
        Every score of classes or of numbers by name; `None` for those that need beliefs where
        there are none.
    n_scored
        Items with a prediction and a truth.
    n_without_truth
        Predicted items whose truth is not known.
    n_without_prediction
        Items of the truth that were not predicted.
    resamples, level
        How many bootstrap samples stand behind the intervals, and what share they cover.
    """

    scores: dict[str, Score | None]
    n_scored: int
    n_without_truth: int
    n_without_prediction: int
    resamples: int
    level: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON."""
        scores = {
            name: score and {k: None if math.isnan(v) else v for k, v in score._asdict().items()}
            for name, score in self.scores.items()
        }
        return {**vars(self), "scores": scores}


def as_predictions(result: Aggregation | Estimation) -> Predictions | Values:
    """Return the part of a result that can be right or wrong."""
    if isinstance(result, Estimation):
        return Values(result.annotations.items, result.value)
    return Predictions(result.annotations.items, result.classes, result.label, result.posterior)


def evaluate(
    predicted: Aggregation | Estimation | Predictions | Values,
    truth: Mapping[Any, Any],
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Compare predictions with the truth.

    Parameters
    ----------
    predicted
        A result, or labels or numbers from elsewhere.
    truth
        `{item: class}`, or `{item: number}` for numbers. It may miss items, have more of them, and
        have classes that are never predicted; only items that are in both are scored.
    resamples
        How many bootstrap samples of the items to draw; with 0, there are no intervals.
    level
        The share that an interval covers, between the percentiles left and right of it.
    seed
        Decides the bootstrap samples.

    Examples
    --------
    >>> from dissensus import Annotations, Numbers, aggregate, estimate
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> found = evaluate(aggregate(annotations, "majority"), {"a": 0, "b": 0, "c": 1})
    >>> found.scores["accuracy"]
    Score(value=0.5, low=0.0, high=1.0)
    >>> found.n_without_prediction
    1
    >>> annotations = Numbers.from_columns("aaabbb", "xyzxyz", [1, 2, 6, 4, 5, 6])
    >>> evaluate(estimate(annotations, "mean"), {"a": 2, "b": 5}).scores["mae"]
    Score(value=0.5, low=0.0, high=1.0)
    """
    if resamples < 0:
        raise OptionError(f"resamples = {resamples}, but it must be at least 0")
    if not 0 < level < 1:
        raise OptionError(f"level = {level}, but it must be above 0 and below 1")
    given = (
        as_predictions(predicted) if isinstance(predicted, (Aggregation, Estimation)) else predicted
    )
    _check_names(given.items.tolist())
    known = {text(item): label for item, label in truth.items()}
    random = np.random.default_rng(seed)
    names: tuple[str, ...]
    if isinstance(given, Values):
        names, predicts = NUMBER_SCORES, int((~np.isnan(given.value)).sum())
        found = _numbers_scored(given, known, resamples, random)
    else:
        names, predicts = CLASS_SCORES, len(given.items)
        found = _classes_scored(given, known, resamples, random)
    scores: dict[str, Score | None] = dict.fromkeys(names)
    scores |= {name: _score(told, level) for name, told in found.told.items()}
    without = predicts - found.n_items, len(known) - found.n_items
    return Evaluation(scores, found.n_items, *without, resamples, level)


class _Scored(NamedTuple):
    told: dict[str, Floats]  # score → its value, and those of bootstrap samples
    n_items: int


def _classes_scored(
    given: Predictions, truth: Mapping[str, Any], resamples: int, random: np.random.Generator
) -> _Scored:
    true, n_classes = true_classes(given, {item: text(label) for item, label in truth.items()})
    position = np.flatnonzero(true >= 0)
    _check_some(position, len(truth), len(true))
    told = class_scores(given, position, true[position], n_classes, resamples, random)
    return _Scored(told, len(position))


def _numbers_scored(
    given: Values, truth: Mapping[str, Any], resamples: int, random: np.random.Generator
) -> _Scored:
    true = _true_values(given.items.tolist(), truth)
    position = np.flatnonzero(~np.isnan(true) & ~np.isnan(given.value))
    _check_some(position, len(truth), len(true))
    told = number_scores(given.value[position], true[position], resamples, random)
    return _Scored(told, len(position))


def _score(told: Floats, level: float) -> Score:
    """Return a score and its interval from its value and those of bootstrap samples."""
    value, drawn = float(told[0]), told[1:][~np.isnan(told[1:])]
    if math.isnan(value) or len(drawn) == 0:
        return Score(value, math.nan, math.nan)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Score(value, float(low), float(high))


def _check_names(items: list[str]) -> None:
    if len(set(items)) < len(items):
        twice = Counter(items).most_common(1)[0][0]
        raise DataError(f"item {twice!r} is predicted more than once; keep one prediction of it")


def _check_some(position: Integers, n_known: int, n_predicted: int) -> None:
    if len(position) == 0:
        raise DataError(
            f"nothing to score: none of the {n_known} items with a known truth is among "
            f"the {n_predicted} predicted; are they named alike?"
        )


def _true_values(items: list[str], truth: Mapping[str, Any]) -> Floats:
    """Return the true value of every item, NaN where it is not known."""
    values = np.full(len(items), np.nan)
    for position, item in enumerate(items):
        if item not in truth:
            continue
        try:
            values[position] = float(truth[item])
        except (TypeError, ValueError):
            values[position] = math.nan
        if not math.isfinite(values[position]):
            raise DataError(
                f"the truth of item {item!r} is {truth[item]!r}, which is not a number, "
                "but numbers were predicted"
            )
    return values
