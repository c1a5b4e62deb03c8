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

from ..answers import KINDS
from ..answers.gold import as_number
from ..base.arrays import Array, Floats, Integers
from ..base.tables import Table, columns_of
from ..dispatch import by_kind
from ..errors import DataError, OptionError
from ..formats import as_truth, read_predictions
from ..pages.sections import Section
from ..pages.sections import Table as SmallTable
from ..pages.wording import titles, with_interval
from ..result import Predictions, Result, Values
from .answer_scores import answer_scores, ranked_by, scores_of_things, thing_scores
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


@dataclass(frozen=True, repr=False, kw_only=True)
class Evaluation(Result):
    """Scores, and the number of items behind them.

    Attributes
    ----------
    kind
        The kind of the predicted answers.
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
    units
        What is scored: items, or things that were ranked.
    """

    kind: str
    scores: dict[str, Score | None]
    n_scored: int
    n_without_truth: int
    n_without_prediction: int
    resamples: int
    confidence: float
    units: str = "items"

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {score.value:.3f}" for name, score in self.available.items())
        return f"<Evaluation of {self.n_scored} {self.units}: {values}>"

    @property
    def available(self) -> dict[str, Score]:
        """The scores that could be computed."""
        return {name: score for name, score in self.scores.items() if score is not None}

    @property
    def tables(self) -> Mapping[str, Table]:
        """The scores."""
        rows = [{"score": name, **score._asdict()} for name, score in self.available.items()]
        return {"scores": columns_of(rows)}

    @property
    def sentences(self) -> tuple[str, ...]:
        """How many items have a prediction or a truth alone."""
        counts = {
            "predicted items have no known answer": self.n_without_truth,
            "known answers have no prediction": self.n_without_prediction,
        }
        return tuple(f"{count} {words}" for words, count in counts.items() if count)

    def sections(self) -> tuple[Section, ...]:
        """Return the scores, and which items have none."""
        table = scores_table(f"{self.n_scored} {self.units} scored", self.available, "scores")
        missing = Section("missing", "Without a score", text=self.sentences)
        return Section("scores", "Scores", panels=[[table]]), missing


def scores_table(caption: str, scores: Mapping[str, Any], family: str) -> SmallTable:
    """Return scores with their intervals, in the order and words of their family."""
    rows = [
        (title, *with_interval(scores[name], ".4f"))
        for name, title in titles(family, short=True).items()
        if name in scores
    ]
    return SmallTable(caption, ("score", "value", "95 % interval"), rows)


def as_predictions(predicted: Any) -> Any:
    """Return what was predicted, with its kind: from a result, or from what holds predictions."""
    if hasattr(type(predicted), "predictions"):
        return predicted.predictions
    return predicted if hasattr(type(predicted), "kind") else read_predictions(predicted)


@by_kind(read=as_predictions)
def evaluate(
    predicted: Any, truth: Any, *, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> Evaluation:
    """Compare predictions with the truth.

    Parameters
    ----------
    predicted
        A result, predictions, or a file, table, mapping or pandas Series with them; of kinds other
        than classes and numbers a result, answers with one answer per item, or `Things`.
    truth
        `{item: class}`, `{item: number}`, a pandas Series, a table or a file. It may lack items,
        have more of them, and have classes that are never predicted; only items that are in both
        are scored. For other kinds answers, `{item: value}` with values as in rows, or of things
        that were ranked `{thing: score}`.
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
    raise NotImplementedError


@evaluate.for_kind("classes")
def evaluate_classes(
    predicted: Predictions, truth: Any, *, resamples: int, confidence: float, seed: int
) -> Evaluation:
    """Compare predicted classes with true ones."""
    truth_of = _checked(predicted, truth, resamples, confidence)
    true, classes = true_classes(predicted, truth_of)
    scored = _scored(true >= 0, truth_of)
    samples = class_scores(
        predicted,
        scored,
        true[scored],
        classes=classes,
        resamples=resamples,
        random=np.random.default_rng(seed),
    )
    scores = dict.fromkeys(CLASS_SCORES) | _from_samples(samples, confidence)
    error = scores["ece"]
    if error is not None:
        scores["ece"] = error.shifted(samples["ece"])
    return Evaluation(
        kind=predicted.kind,
        scores=scores,
        n_scored=len(scored),
        n_without_truth=len(predicted.items) - len(scored),
        n_without_prediction=len(truth_of) - len(scored),
        resamples=resamples,
        confidence=confidence,
    )


@evaluate.for_kind("numbers")
def evaluate_numbers(
    predicted: Values, truth: Any, *, resamples: int, confidence: float, seed: int
) -> Evaluation:
    """Compare predicted numbers with true ones."""
    truth_of = _checked(predicted, truth, resamples, confidence)
    values, has_value = _true_values(predicted.items.tolist(), truth_of), ~np.isnan(predicted.value)
    scored = _scored(~np.isnan(values) & has_value, truth_of)
    random = np.random.default_rng(seed)
    samples = number_scores(predicted.value[scored], values[scored], resamples, random)
    return Evaluation(
        kind=predicted.kind,
        scores=dict.fromkeys(NUMBER_SCORES) | _from_samples(samples, confidence),
        n_scored=len(scored),
        n_without_truth=int(has_value.sum()) - len(scored),
        n_without_prediction=len(truth_of) - len(scored),
        resamples=resamples,
        confidence=confidence,
    )


@evaluate.for_kind(*KINDS)
def evaluate_answers(
    predicted: Any, truth: Any, *, resamples: int, confidence: float, seed: int
) -> Evaluation:
    """Compare answers with known ones of the same kind."""
    check_resampling(resamples, confidence)
    predicted = getattr(predicted, "truth", predicted)
    if not hasattr(truth, "kind"):
        truth = type(predicted).from_values(list(truth), ["truth"] * len(truth), [*truth.values()])
    ratios, without_truth, without_prediction = answer_scores(predicted, truth)
    samples = _resampled(ratios, resamples, seed)
    return Evaluation(
        kind=predicted.kind,
        scores=_from_samples(samples, confidence),
        n_scored=next(iter(ratios.values())).n_units,
        n_without_truth=without_truth,
        n_without_prediction=without_prediction,
        resamples=resamples,
        confidence=confidence,
    )


@evaluate.for_kind("rankings")
def evaluate_rankings(
    predicted: Any, truth: Any, *, resamples: int, confidence: float, seed: int
) -> Evaluation:
    """Compare rankings of items with known ones, or the scores of things with known scores."""
    scores = scores_of_things(predicted)
    if scores is None or not _are_scores(truth):
        if scores is not None and not hasattr(predicted, "truth"):
            predicted = ranked_by(scores, truth)
        return evaluate_answers(
            predicted, truth, resamples=resamples, confidence=confidence, seed=seed
        )
    check_resampling(resamples, confidence)
    ratios = thing_scores(scores, truth)
    return Evaluation(
        kind=predicted.kind,
        scores=_from_samples(_resampled(ratios, resamples, seed), confidence),
        n_scored=next(iter(ratios.values())).n_units,
        n_without_truth=0,
        n_without_prediction=0,
        resamples=resamples,
        confidence=confidence,
        units="things",
    )


def _are_scores(truth: Any) -> bool:
    """Return whether a truth is the scores of things, rather than answers to items."""
    return isinstance(truth, Mapping) and all(isinstance(v, (int, float)) for v in truth.values())


def _resampled(ratios: Mapping[str, Any], resamples: int, seed: int) -> dict[str, Floats]:
    """Return the value of every score, and those of bootstrap samples of its units after it."""
    n_units = next(iter(ratios.values())).n_units
    once = np.ones((1, n_units))
    rng = np.random.default_rng(seed)
    sizes = [64] * (resamples // 64) + [resamples % 64]
    drawn = [rng.multinomial(n_units, once[0] / n_units, size=size) for size in sizes if size]
    weights = [once, *(sample.astype(float) for sample in drawn)]
    return {
        name: np.concatenate([ratio.values(sample) for sample in weights])
        for name, ratio in ratios.items()
    }


def _from_samples(samples: Mapping[str, Floats], confidence: float) -> dict[str, Score | None]:
    return {name: Score.from_samples(values, confidence) for name, values in samples.items()}


def _checked(
    predicted: Predictions | Values, truth: Any, resamples: int, confidence: float
) -> dict[str, str]:
    """Return the truth of every item; impossible settings and repeated items are refused."""
    check_resampling(resamples, confidence)
    _check_names(predicted.items.tolist())
    return as_truth(truth) or {}


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
