"""Scores of predictions against the truth, with bootstrap intervals.

Where labels are classes (`class_scores`):

    accuracy              the most probable class is the truth; one of m tied classes counts 1/m
    accuracy_as_labelled  the label given is the truth; undecided is wrong
    macro_f1              mean F1 of the classes that occur in the truth or in the labels given
    log_loss              mean of -log of the probability of the truth, clipped at 1e-15
    brier                 mean squared error of the probabilities, summed over classes: 0 to 2
    ece                   expected calibration error, 15 bins of equal width over all items
    distance              mean distance of the label given from the truth, in steps, where classes
                          are ordered; undecided is as far away as possible

Where they are numbers (`number_scores`):

    mae                   mean absolute error
    rmse                  root of the mean squared error
    pearson               correlation with the truth
    spearman              correlation of the ranks; equal values share the mean rank

Answers of other kinds are scored as `answer_scores` says. Intervals are percentiles of bootstrap
samples of the items.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..answers import Answers
from ..answers.gold import as_number
from ..base.arrays import Array, Floats, Integers
from ..base.storage import as_plain
from ..base.tables import Table, Tabular, columns_of
from ..errors import DataError, OptionError
from ..formats import as_truth, read_predictions
from ..result import Predictions, Values
from .answer_scores import answer_scores, thing_scores
from .scores import CLASS_SCORES, NUMBER_SCORES, class_scores, number_scores, true_classes


class Score(NamedTuple):
    """A score and its bootstrap interval; the bounds are NaN without resamples.

    A correlation with a constant is NaN.
    """

    value: float
    low: float
    high: float

    @classmethod
    def from_samples(cls, samples: Floats, confidence: float) -> Score:
        """Return a score and its interval from its value and those of bootstrap samples."""
        value, drawn = float(samples[0]), samples[1:][~np.isnan(samples[1:])]
        if math.isnan(value) or len(drawn) == 0:
            return cls(value, math.nan, math.nan)
        low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
        return cls(value, float(low), float(high))

    def shifted(self, samples: Floats) -> Score:
        """Return it without the bias of bootstrap samples, for a score that is never negative.

        A calibration error adds up absolute gaps, which samples make larger.
        """
        bias = float(samples[1:].mean()) - self.value if len(samples) > 1 else 0.0
        return self._replace(low=max(self.low - bias, 0.0), high=max(self.high - bias, 0.0))


@dataclass(frozen=True, repr=False)
class Evaluation(Tabular):
    """Scores, and the number of items behind them.

    Attributes
    ----------
    scores
        Scores by name; `None` for those that need a posterior where there is none.
    n_scored
        Items with a prediction and a truth.
    n_without_truth
        Predicted items without a truth.
    n_without_prediction
        Items of the truth without a prediction.
    resamples, confidence
        Number of bootstrap samples, and the level of the intervals.
    """

    scores: dict[str, Score | None]
    n_scored: int
    n_without_truth: int
    n_without_prediction: int
    resamples: int
    confidence: float

    def __repr__(self) -> str:
        available = [
            (name, score.value) for name, score in self.scores.items() if score is not None
        ]
        values = ", ".join(f"{name} {value:.3f}" for name, value in available)
        return f"<Evaluation of {self.n_scored} items: {values}>"

    def _table(self) -> Table:
        available = [(name, score) for name, score in self.scores.items() if score is not None]
        return columns_of([{"score": name, **score._asdict()} for name, score in available])

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON."""
        return as_plain(self)


def evaluate(
    predicted: Any, truth: Any, *, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> Evaluation:
    """Compare predictions with the truth.

    Parameters
    ----------
    predicted
        A result, predictions, or a file, table, mapping or pandas Series with them.
    truth
        `{item: class}`, `{item: number}`, a pandas Series, a table or a file. It may lack items,
        have more of them, and have classes that are never predicted; only items that are in both
        are scored.
    resamples
        Number of bootstrap samples of the items; with 0, there are no intervals.
    confidence
        Confidence level of the intervals.
    seed
        Random seed of the bootstrap.

    Examples
    --------
    >>> from dissensus import Annotations, Numbers, aggregate
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> evaluation = evaluate(aggregate(annotations, "majority"), {"a": 0, "b": 0, "c": 1})
    >>> evaluation.scores["accuracy"]
    Score(value=0.5, low=0.0, high=1.0)
    >>> evaluation.n_without_prediction
    1
    >>> annotations = Numbers.from_columns("aaabbb", "xyzxyz", [1, 2, 6, 4, 5, 6])
    >>> evaluate(aggregate(annotations, "mean"), {"a": 2, "b": 5}).scores["mae"]
    Score(value=0.5, low=0.0, high=1.0)
    """
    answers = _as_answers(predicted)
    if answers is not None:
        return evaluate_answers(
            answers, truth, resamples=resamples, confidence=confidence, seed=seed
        )
    check_resampling(resamples, confidence)
    predicted = getattr(predicted, "predictions", predicted)
    if not isinstance(predicted, (Predictions, Values)):
        predicted = read_predictions(predicted)
    _check_names(predicted.items.tolist())
    truth_of = as_truth(truth) or {}
    random = np.random.default_rng(seed)
    samples: dict[str, Floats]
    names: tuple[str, ...]
    if isinstance(predicted, Values):
        names, n_predicted = NUMBER_SCORES, int((~np.isnan(predicted.value)).sum())
        values = _true_values(predicted.items.tolist(), truth_of)
        scored = _scored(~np.isnan(values) & ~np.isnan(predicted.value), truth_of)
        samples = number_scores(predicted.value[scored], values[scored], resamples, random)
    else:
        names, n_predicted = CLASS_SCORES, len(predicted.items)
        true, classes = true_classes(predicted, truth_of)
        scored = _scored(true >= 0, truth_of)
        samples = class_scores(
            predicted, scored, true[scored], classes=classes, resamples=resamples, random=random
        )
    scores: dict[str, Score | None] = dict.fromkeys(names)
    scores |= {name: Score.from_samples(values, confidence) for name, values in samples.items()}
    error = scores.get("ece")
    if error is not None:
        scores["ece"] = error.shifted(samples["ece"])
    missing = n_predicted - len(scored), len(truth_of) - len(scored)
    return Evaluation(scores, len(scored), *missing, resamples, confidence)


def _as_answers(predicted: Any) -> Answers | None:
    """Return a consensus, or answers, of another kind than classes and numbers."""
    answers = getattr(predicted, "truth", predicted)
    return answers if isinstance(answers, Answers) else None


def evaluate_answers(
    predicted: Answers | Mapping[str, float],
    truth: Any,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Compare answers with known ones of the same kind, by the scores of `metrics.answers`.

    Parameters
    ----------
    predicted
        One answer per item, or the scores of things that were compared.
    truth
        Known answers; `{item: value}` with values as in rows; or the scores of things.
    resamples, confidence, seed
        As in `evaluate`.
    """
    check_resampling(resamples, confidence)
    if not isinstance(predicted, Answers):
        ratios: Mapping[str, Any] = thing_scores(predicted, truth)
        missing = (0, 0)
    else:
        if not isinstance(truth, Answers):
            annotator = ["truth"] * len(truth)
            truth = type(predicted).from_values(list(truth), annotator, list(truth.values()))
        ratios, *counts = answer_scores(predicted, truth)
        missing = counts[0], counts[1]
    n_scored = next(iter(ratios.values())).n_units
    once = np.ones((1, n_scored))
    rng = np.random.default_rng(seed)
    sizes = [64] * (resamples // 64) + [resamples % 64]
    weights = [rng.multinomial(n_scored, once[0] / n_scored, size=size) for size in sizes if size]
    scores: dict[str, Score | None] = {
        name: Score.from_samples(
            np.concatenate([ratio.values(once), *(ratio.values(w.astype(float)) for w in weights)]),
            confidence,
        )
        for name, ratio in ratios.items()
    }
    return Evaluation(scores, n_scored, *missing, resamples, confidence)


def check_resampling(resamples: int, confidence: float) -> None:
    """Refuse impossible settings of the bootstrap."""
    if resamples < 0:
        raise OptionError(f"resamples = {resamples}, but it must be at least 0")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence = {confidence}, but it must be above 0 and below 1")


def _check_names(items: list[str]) -> None:
    if len(set(items)) < len(items):
        twice = Counter(items).most_common(1)[0][0]
        raise DataError(f"item {twice!r} is predicted more than once; keep one prediction of it")


def _scored(in_both: Array, truth_of: Mapping[str, Any]) -> Integers:
    """Return the indices of the items with a prediction and a truth; there must be some."""
    if not in_both.any():
        raise DataError(
            f"nothing to score: none of the {len(truth_of)} items with a known truth is among "
            f"the {len(in_both)} predicted; are they named alike?"
        )
    return np.flatnonzero(in_both)


def _true_values(items: list[str], truth: Mapping[str, Any]) -> Floats:
    """Return the true value of every item, NaN where it is unknown."""
    values = np.full(len(items), np.nan)
    for index, item in enumerate(items):
        if item not in truth:
            continue
        values[index] = as_number(truth[item])
        if not math.isfinite(values[index]):
            raise DataError(
                f"the truth of item {item!r} is {truth[item]!r}, which is not a number, "
                "but numbers were predicted"
            )
    return values
