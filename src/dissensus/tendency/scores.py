"""How well single annotators are foreseen.

    log_loss      mean over labels of −log of the chance that was given to them
    accuracy      share of labels that had the highest chance; a tie between m classes counts 1/m
    macro_f1      mean F1 of an annotator's classes
    ece           expected calibration error over all labels, 15 bins
    habit_error   how far an annotator's mean chances are from the shares of what they said

Accuracy and F1 of annotators with few labels say nothing, so those with fewer than `min_labels`
are left out of everything that is told per annotator; their labels still count in `log_loss`. Half
of an annotator's labels may be one class whatever the item: a score says little unless
`own-majority` and `consensus` stand beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._names import Names
from .._probability import TIE
from .._relation import Floats, Integers, frozen
from ..annotations import Annotations
from ..errors import DataError
from .dic import Dic, dic, split_half, with_labels

__all__ = ["TendencyScores", "most_likely", "score", "vote"]

_BINS = 15
_LEAST = 1e-15


@dataclass(frozen=True, eq=False)
class TendencyScores:
    """How well single annotators are foreseen; arrays have a row per annotator.

    Attributes
    ----------
    count
        Labels of every annotator that were foreseen.
    accuracy, log_loss, macro_f1, habit_error
        Of every annotator; NaN for those without labels.
    overall
        Mean log loss over labels, calibration error, DIC and its companions, and the accuracy of
        the vote of predictions against the vote of labels.
    """

    annotators: Names
    min_labels: int
    count: Integers
    accuracy: Floats
    log_loss: Floats
    macro_f1: Floats
    habit_error: Floats
    overall: dict[str, float]
    pairs: Dic

    @property
    def known(self) -> Any:
        """Which annotators gave enough labels to be spoken of."""
        return self.count >= self.min_labels

    def summary(self) -> dict[str, float]:
        """Return the numbers of a line in a table."""
        out = dict(self.overall)
        for name in ("accuracy", "macro_f1", "habit_error"):
            out[name] = _mean(getattr(self, name)[self.known])
        accuracy = np.sort(self.accuracy[self.known])
        out["accuracy_median"] = float(np.median(accuracy)) if len(accuracy) else math.nan
        out["accuracy_worst_decile"] = _mean(accuracy[: math.ceil(len(accuracy) / 10)])
        out["log_loss_by_annotator"] = _mean(self.log_loss[self.known])
        out["n_annotators"] = float(self.known.sum())
        return out

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON."""
        each = ("count", "accuracy", "log_loss", "macro_f1", "habit_error")
        rows = zip(*(getattr(self, name).tolist() for name in each), strict=True)
        return {
            "summary": {name: _plain(value) for name, value in self.summary().items()},
            "min_labels": self.min_labels,
            "annotators": {
                name: {key: _plain(value) for key, value in zip(each, row, strict=True)}
                for name, row in zip(self.annotators.tolist(), rows, strict=True)
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
    """Return how well annotations were foreseen.

    Parameters
    ----------
    annotations
        What annotators said, of items that no model has learned from.
    log_probability
        What each was expected to say there: (annotation, class), in the order of `annotations`.
    min_labels
        Labels below which nothing is told of an annotator.
    seed
        Decides ties of votes, and halves of the items.
    floor
        Whether to measure the noise that DIC cannot fall below.
    options
        Of `dic`: min_overlap, measure, weights.

    Examples
    --------
    >>> annotations = Annotations.from_matrix([[0, 1], [1, 1]])
    >>> sure = np.log([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.3, 0.7]])
    >>> score(annotations, sure, min_labels=1).accuracy.tolist()
    [1.0, 1.0]
    """
    if log_probability.shape != (len(annotations), annotations.n_classes):
        raise DataError(
            f"chances of {log_probability.shape} for {len(annotations)} labels of {annotations.n_classes} classes"
        )
    annotator, label = annotations.annotator.astype(np.int64), annotations.label.astype(np.int64)
    size, here = annotations.n_annotators, np.arange(len(annotations))
    best = log_probability.max(axis=1)
    tied = log_probability >= best[:, None] - TIE
    right = tied[here, label] / tied.sum(axis=1)
    loss = -np.maximum(log_probability[here, label], math.log(_LEAST))
    count = np.bincount(annotator, minlength=size)
    predicted = most_likely(log_probability)
    pairs = dic(annotations, with_labels(annotations, predicted), **options)
    overall = {
        "log_loss": _mean(loss),
        "ece": _ece(np.exp(best), right),
        "dic": pairs.dic,
        "dic_rms": pairs.dic_rms,
        "kappa_correlation": pairs.correlation,
        "n_pairs_used": float(pairs.n_pairs_used),
        "consensus_accuracy": _consensus(annotations, predicted, seed),
    }
    if floor:
        overall["dic_floor"], overall["dic_rms_floor"] = split_half(
            annotations, seed=seed, **options
        )
    return TendencyScores(
        annotations.annotators,
        min_labels,
        frozen(count),
        frozen(_by(annotator, right, count)),
        frozen(_by(annotator, loss, count)),
        frozen(
            _f1(annotator, label, predicted, annotations.n_annotators, annotations.n_classes, count)
        ),
        frozen(_habit_error(annotations, np.exp(log_probability), count)),
        overall,
        pairs,
    )


def most_likely(log_probability: Floats) -> Integers:
    """Return the class of highest chance, the first of several: (…)."""
    return log_probability.argmax(axis=-1)


def vote(votes: Floats, seed: int = 0) -> Integers:
    """Return the class with most votes, ties drawn: (item); -1 where there is none.

    >>> vote(np.array([[2.0, 1.0], [0.0, 0.0], [0.0, 3.0]])).tolist()
    [0, -1, 1]
    """
    random = np.random.default_rng([seed, 0x707E]).random(votes.shape)
    tied = votes >= votes.max(axis=1, keepdims=True) - TIE
    return np.where(votes.max(axis=1) > 0, np.where(tied, random, -1.0).argmax(axis=1), -1)


def _consensus(annotations: Annotations, predicted: Integers, seed: int) -> float:
    """Return how often the vote of predictions is that of labels, where that one is decided."""
    true, guessed = annotations.votes(), with_labels(annotations, predicted).votes()
    most = true.max(axis=1, keepdims=True)
    decided = ((true >= most - TIE).sum(axis=1) == 1) & (most[:, 0] > 0)
    return _mean((vote(guessed, seed) == true.argmax(axis=1))[decided].astype(float))


def _by(annotator: Integers, value: Floats, count: Integers) -> Floats:
    """Return means by annotator, NaN for those without labels."""
    total = np.bincount(annotator, value, len(count))
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)


def _f1(
    annotator: Integers,
    label: Integers,
    predicted: Integers,
    n_annotators: int,
    n_classes: int,
    count: Integers,
) -> Floats:
    """Return the mean F1 of the classes that an annotator says, or is thought to: (annotator)."""
    cells = n_annotators * n_classes

    def tally(code: Integers, weight: Any = None) -> Floats:
        found = np.bincount(annotator * n_classes + code, weight, cells)
        return found.reshape(n_annotators, n_classes).astype(np.float64)

    occurs = tally(label) + tally(predicted)
    hits = 2 * tally(label, (label == predicted).astype(float))
    f1 = np.divide(hits, occurs, out=np.zeros_like(hits), where=occurs > 0)
    mean = f1.sum(axis=1) / np.maximum((occurs > 0).sum(axis=1), 1)
    return np.where(count > 0, mean, np.nan)


def _habit_error(annotations: Annotations, chance: Floats, count: Integers) -> Floats:
    """Return half the sum of differences between mean chances and shares: (annotator)."""
    annotator = annotations.annotator.astype(np.int64)
    gap = chance - np.eye(annotations.n_classes)[annotations.label]
    mean = np.stack([_by(annotator, column, count) for column in gap.T], axis=1)
    return np.abs(mean).sum(axis=1) / 2


def _ece(confidence: Floats, right: Floats) -> float:
    which = np.clip(np.ceil(confidence * _BINS - 1e-9).astype(np.int64), 1, _BINS) - 1
    gap = np.bincount(which, right - confidence, _BINS)
    return float(np.abs(gap).sum() / max(len(right), 1))


def _mean(values: Floats) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value
