"""Scores of predictions for individual annotators.

    log_loss        mean over labels of −log of their predicted probability
    accuracy        share of labels with the highest probability; ties between m classes count 1/m
    macro_f1        mean F1 of an annotator's classes
    weighted_f1     the same, weighted by how often the annotator gave each class
    mae             mean absolute error of the most probable label, in steps between ordered classes
    ece             expected calibration error over all labels, 15 bins
    error_rate      mean over items of the share of annotators whose label was not predicted
    anad            average normalized absolute distance of ordered classes (`metrics.lewidi`)
    marginal_error  total variation distance between mean predictions and label marginals

Accuracy and F1 of annotators with few labels are noise, so annotators with fewer than `min_labels`
are left out of means over annotators; their labels still count in `log_loss`. Half of an
annotator's labels may be one class whatever the item: compare every score with those of
`own-majority` and `consensus`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...answers.annotations import Annotations, Names
from ...base.arrays import Floats, Integers, frozen
from ...base.storage import as_plain
from ...errors import DataError
from ...metrics import annotator_errors, ranks
from .dic import Dic, dic, split_half

_BINS = 15
_LEAST = 1e-15
_TIE = 1e-12  # probabilities closer than this are equal
_BY_ANNOTATOR = (
    "count",
    "accuracy",
    "log_loss",
    "macro_f1",
    "weighted_f1",
    "mae",
    "marginal_error",
)


@dataclass(frozen=True, eq=False)
class TendencyScores:
    """Scores of predictions for individual annotators; arrays have a row per annotator.

    Attributes
    ----------
    count
        Labels of every annotator that were predicted.
    accuracy, log_loss, macro_f1, weighted_f1, mae, marginal_error
        Of every annotator; NaN for those without labels, and `mae` where classes are not ordered.
    overall
        Mean log-loss over labels, calibration error, error rate, DIC and related measures, and the
        accuracy of the majority vote of predictions against that of labels.
    """

    annotators: Names
    min_labels: int
    count: Integers
    accuracy: Floats
    log_loss: Floats
    macro_f1: Floats
    weighted_f1: Floats
    mae: Floats
    marginal_error: Floats
    overall: dict[str, float]
    pairs: Dic

    @property
    def enough(self) -> Any:
        """Which annotators have enough labels."""
        return self.count >= self.min_labels

    def summary(self) -> dict[str, float]:
        """Return overall scores and means over annotators."""
        out = dict(self.overall)
        for name in ("accuracy", "macro_f1", "weighted_f1", "mae", "marginal_error"):
            out[name] = _mean(getattr(self, name)[self.enough])
        accuracy = np.sort(self.accuracy[self.enough])
        out["accuracy_median"] = float(np.median(accuracy)) if len(accuracy) else math.nan
        out["accuracy_worst_decile"] = _mean(accuracy[: math.ceil(len(accuracy) / 10)])
        out["log_loss_by_annotator"] = _mean(self.log_loss[self.enough])
        out["n_annotators"] = float(self.enough.sum())
        return out

    def as_dict(self) -> dict[str, Any]:
        """Return the scores for JSON."""
        columns = [getattr(self, name).tolist() for name in _BY_ANNOTATOR]
        return {
            "summary": as_plain(self.summary()),
            "min_labels": self.min_labels,
            "annotators": {
                name: as_plain(dict(zip(_BY_ANNOTATOR, row, strict=True)))
                for name, *row in zip(self.annotators.tolist(), *columns, strict=True)
            },
        }


def score(
    annotations: Annotations,
    log_probability: Floats,
    *,
    min_labels: int = 10,
    seed: int = 0,
    floor: bool = True,
    **options: Any,
) -> TendencyScores:
    """Return scores of predictions.

    Parameters
    ----------
    annotations
        Labels on held-out items.
    log_probability
        Predictions: (annotation, class), in the order of `annotations`.
    min_labels
        Labels below which an annotator is left out of means.
    seed
        Random seed, for ties of votes and for halves of the items.
    floor
        Whether to measure the DIC due to noise alone.
    options
        Of `dic`: min_overlap, measure, weights.

    Examples
    --------
    >>> annotations = Annotations.from_matrix([[0, 1], [1, 1]])
    >>> log_probability = np.log([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.3, 0.7]])
    >>> score(annotations, log_probability, min_labels=1).accuracy.tolist()
    [1.0, 1.0]
    """
    if log_probability.shape != (len(annotations), annotations.n_classes):
        raise DataError(
            f"probabilities of shape {log_probability.shape} for {len(annotations)} labels of "
            f"{annotations.n_classes} classes"
        )
    annotator, label = annotations.annotator.astype(np.int64), annotations.label.astype(np.int64)
    rows, n_classes = np.arange(len(annotations)), annotations.n_classes
    best = log_probability.max(axis=1)
    tied = log_probability >= best[:, None] - _TIE
    correct = tied[rows, label] / tied.sum(axis=1)
    loss = -np.maximum(log_probability[rows, label], math.log(_LEAST))
    count = np.bincount(annotator, minlength=annotations.n_annotators)
    predicted = log_probability.argmax(axis=1)
    predictions = annotations.with_codes(label=predicted)
    pairs = dic(annotations, predictions, **options)
    overall = {
        "log_loss": _mean(loss),
        "ece": _ece(np.exp(best), correct),
        "dic": pairs.dic,
        "dic_rms": pairs.dic_rms,
        "kappa_correlation": pairs.correlation,
        "n_pairs_used": float(pairs.n_pairs_used),
        "consensus_accuracy": _consensus_accuracy(annotations, predictions, seed),
        **annotator_errors(annotations, tied / tied.sum(axis=1, keepdims=True)),
    }
    if floor:
        noise = split_half(annotations, seed=seed, **options)
        overall["dic_floor"], overall["dic_rms_floor"] = noise

    def mean_by_annotator(values: Floats) -> Floats:
        total = np.bincount(annotator, values, len(count))
        return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)

    gap = np.exp(log_probability) - np.eye(n_classes)[label]
    gap = np.stack([mean_by_annotator(column) for column in gap.T], axis=1)
    f1, weighted = _f1(annotator, label, predicted, (len(count), n_classes))
    steps = np.full(len(annotations), np.nan)
    if annotations.scale == "ordinal":
        rank = ranks(annotations.classes)
        distance = np.abs(rank[label][:, None] - rank)
        steps = (distance * tied).sum(axis=1) / tied.sum(axis=1)
    return TendencyScores(
        annotators=annotations.annotators,
        min_labels=min_labels,
        count=frozen(count),
        accuracy=frozen(mean_by_annotator(correct)),
        log_loss=frozen(mean_by_annotator(loss)),
        macro_f1=frozen(np.where(count > 0, f1, np.nan)),
        weighted_f1=frozen(np.where(count > 0, weighted, np.nan)),
        mae=frozen(mean_by_annotator(steps)),
        marginal_error=frozen(np.abs(gap).sum(axis=1) / 2),
        overall=overall,
        pairs=pairs,
    )


def vote(votes: Floats, seed: int = 0) -> Integers:
    """Return the class with most votes, ties at random: (item); -1 without votes.

    >>> vote(np.array([[2.0, 1.0], [0.0, 0.0], [0.0, 3.0]])).tolist()
    [0, -1, 1]
    """
    random = np.random.default_rng([seed, 0x707E]).random(votes.shape)
    tied = votes >= votes.max(axis=1, keepdims=True) - _TIE
    return np.where(votes.max(axis=1) > 0, np.where(tied, random, -1.0).argmax(axis=1), -1)


def _consensus_accuracy(annotations: Annotations, predictions: Annotations, seed: int) -> float:
    """Return how often the vote of predictions is that of labels, on items without a tie."""
    votes = annotations.votes()
    most = votes.max(axis=1, keepdims=True)
    decided = ((votes >= most - _TIE).sum(axis=1) == 1) & (most[:, 0] > 0)
    correct = vote(predictions.votes(), seed) == votes.argmax(axis=1)
    return _mean(correct[decided].astype(float))


def _f1(
    annotator: Integers, label: Integers, predicted: Integers, shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Return the mean F1 of the classes among an annotator's labels or predictions.

    The second is weighted by the annotator's number of labels of each class.
    """
    n_annotators, n_classes = shape

    def tally(code: Integers, weight: Any = None) -> Floats:
        count = np.bincount(annotator * n_classes + code, weight, n_annotators * n_classes)
        return count.reshape(shape).astype(np.float64)

    n_labels = tally(label)
    total = n_labels + tally(predicted)
    hits = 2 * tally(label, (label == predicted).astype(float))
    f1 = np.divide(hits, total, out=np.zeros_like(hits), where=total > 0)
    macro = f1.sum(axis=1) / np.maximum((total > 0).sum(axis=1), 1)
    return macro, (f1 * n_labels).sum(axis=1) / np.maximum(n_labels.sum(axis=1), 1)


def _ece(confidence: Floats, correct: Floats) -> float:
    bin_ = np.clip(np.ceil(confidence * _BINS - 1e-9).astype(np.int64), 1, _BINS) - 1
    gap = np.bincount(bin_, correct - confidence, _BINS)
    return float(np.abs(gap).sum() / max(len(correct), 1))


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if len(values) else math.nan
