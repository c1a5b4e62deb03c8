"""How right predictions are where the truth is known, with an interval for every score.

Every score comes from sums over items, so a bootstrap over items needs only those sums under
other weights. The weights are multinomial and are dealt to a chunk of items at a time: memory
stays bounded however many items there are, and all resamples are made.

    accuracy              the best class is the truth; a tie between m classes counts 1/m
    accuracy_as_labelled  the label given is the truth; undecided is wrong
    macro_f1              mean F1 of the classes that occur in the truth or in the labels given
    log_loss              mean of -log of the belief in the truth, with beliefs of at least 1e-15
    brier                 mean squared error of the beliefs, summed over classes: 0 to 2
    ece                   expected calibration error, 15 bins of equal width over all items
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ._names import Names, text
from ._relation import Array, Floats, Integers, frozen
from .aggregation._base import TIE
from .errors import DataError, OptionError
from .result import Aggregation

__all__ = ["Evaluation", "Predictions", "Score", "as_predictions", "evaluate"]

_BINS = 15
_LEAST_BELIEF = 1e-15
_CELLS = 2**19  # how many weights, or beliefs, to hold at a time
# Those that need beliefs stand last.
_SCORES = ("accuracy", "accuracy_as_labelled", "macro_f1", "log_loss", "brier", "ece")
_MEANS = ("accuracy", "accuracy_as_labelled", "log_loss", "brier")  # of one number per item


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


class Score(NamedTuple):
    """A score and its bootstrap interval; NaN bounds where nothing was resampled."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Evaluation:
    """The scores, and how many items they rest on.

    Attributes
    ----------
    scores
        Every score by name; `None` for those that need beliefs where there are none.
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


def as_predictions(result: Aggregation) -> Predictions:
    """Return the part of a result that can be right or wrong."""
    return Predictions(result.said.items, result.classes, result.label, result.posterior)


def evaluate(
    predicted: Aggregation | Predictions,
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
        A result, or labels from elsewhere.
    truth
        `{item: class}`. It may miss items, have more of them, and have classes that are never
        predicted; only items that are in both are scored.
    resamples
        How many bootstrap samples of the items to draw; with 0, there are no intervals.
    level
        The share that an interval covers, between the percentiles left and right of it.
    seed
        Decides the bootstrap samples.

    Examples
    --------
    >>> from dissensus import Annotations, aggregate
    >>> said = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> found = evaluate(aggregate(said, "majority"), {"a": 0, "b": 0, "c": 1})
    >>> found.scores["accuracy"]
    Score(value=0.5, low=0.0, high=1.0)
    >>> found.n_without_prediction
    1
    """
    if resamples < 0:
        raise OptionError(f"resamples = {resamples}, but it must be at least 0")
    if not 0 < level < 1:
        raise OptionError(f"level = {level}, but it must be above 0 and below 1")
    given = as_predictions(predicted) if isinstance(predicted, Aggregation) else predicted
    known = {text(item): text(label) for item, label in truth.items()}
    place, true, n_classes = _matched(given, known)
    found = _scores(_sums(given, place, true, n_classes, resamples, seed), n_classes, len(place))
    bounds = [(1 - level) / 2, (1 + level) / 2]
    scores: dict[str, Score | None] = dict.fromkeys(_SCORES)
    for name in _SCORES if given.posterior is not None else _SCORES[:3]:
        value, drawn = found[name][0], found[name][1:]
        low, high = np.quantile(drawn, bounds) if resamples else (math.nan, math.nan)
        scores[name] = Score(float(value), float(low), float(high))
    without = len(given.items) - len(place), len(known) - len(place)
    return Evaluation(scores, len(place), *without, resamples, level)


def _matched(given: Predictions, truth: Mapping[str, str]) -> tuple[Integers, Integers, int]:
    """Return which items are scored, their true classes, and how many classes that makes.

    Classes that only the truth knows get the codes behind those of the predictions.
    """
    items = given.items.tolist()
    if len(set(items)) < len(items):
        twice = Counter(items).most_common(1)[0][0]
        raise DataError(f"item {twice!r} is predicted more than once; keep one prediction of it")
    codes = {name: code for code, name in enumerate(given.classes.tolist())}
    true = np.array(
        [codes.setdefault(truth[item], len(codes)) if item in truth else -1 for item in items],
        dtype=np.int64,
    )
    place = np.flatnonzero(true >= 0)
    if len(place) == 0:
        raise DataError(
            f"nothing to score: none of the {len(truth)} items with a known truth is among "
            f"the {len(items)} predicted; are they named alike?"
        )
    return place, true[place], len(codes)


def _sums(
    given: Predictions,
    place: Integers,
    true: Integers,
    n_classes: int,
    resamples: int,
    seed: int,
) -> Floats:
    """Return the sums behind the scores, of the items as they are and of bootstrap samples.

    The result is (sample, number), the items as they are first.
    """
    random = np.random.default_rng(seed)
    left = np.full(resamples, len(place))  # draws that the items to come will share
    step = max(_CELLS // max(resamples, n_classes), 1)
    sums = np.zeros((len(_MEANS) + 2 * n_classes + _BINS, 1 + resamples))
    for start in range(0, len(place), step):
        chunk = slice(start, start + step)
        numbers = _numbers(given, place[chunk], true[chunk], n_classes)
        size = numbers.shape[0]
        drawn = random.binomial(left, size / (len(place) - start))
        left -= drawn
        cell = random.integers(size, size=drawn.sum())
        cell += np.repeat(np.arange(resamples) * size, drawn)
        weight = np.bincount(cell, minlength=resamples * size).reshape(resamples, size)
        sums[:, 0] += numbers.sum(axis=0)
        sums[:, 1:] += numbers.T @ weight.T.astype(np.float64, order="C")
    return sums.T


def _numbers(
    given: Predictions, place: Integers, true: Integers, n_classes: int
) -> sparse.csr_array[Any, Any]:
    """Return what every item adds to the sums: (item, number), mostly zero.

    The columns are one for each mean, two for each class (twice the hits; the occurrences in
    truth and labels), and one for each bin of confidence (rightness minus confidence).
    """
    item, label = np.arange(len(place)), given.label[place]
    hit, told = label == true, label >= 0
    n_means, occurs = len(_MEANS), len(_MEANS) + n_classes
    entries: list[tuple[Array, Array, Array]] = [  # item, column, number
        (item, np.full(len(item), 1), hit),
        (item[hit], n_means + true[hit], np.full(hit.sum(), 2)),
        (item, occurs + true, np.ones(len(item))),
        (item[told], occurs + label[told], np.ones(told.sum())),
    ]
    if given.posterior is None:
        entries.append((item, np.zeros(len(item), np.int64), hit))
    else:
        belief = np.zeros((len(item), n_classes))  # no belief in classes only the truth knows
        belief[:, : len(given.classes)] = given.posterior[place]
        best, in_truth = belief.max(axis=1), belief[item, true]
        tied = belief >= best[:, None] - TIE
        right = tied[item, true] / tied.sum(axis=1)
        log_loss = -np.log(np.maximum(in_truth, _LEAST_BELIEF))
        belief[item, true] -= 1
        brier = np.einsum("ik,ik->i", belief, belief)
        # Bins are closed above; the small number keeps 0.6 × 15 in its bin whatever its last bit.
        which = np.clip(np.ceil(best * _BINS - 1e-9).astype(np.int64), 1, _BINS) - 1
        for where, mean in ((0, right), (2, log_loss), (3, brier)):
            entries.append((item, np.full(len(item), where), mean))
        entries.append((item, occurs + n_classes + which, right - best))
    row, column, number = map(np.concatenate, zip(*entries, strict=True))
    shape = (len(item), n_means + 2 * n_classes + _BINS)
    return sparse.coo_array((number.astype(np.float64), (row, column)), shape=shape).tocsr()


def _scores(sums: Floats, n_classes: int, n_items: int) -> dict[str, Floats]:
    """Return every score of every sample."""
    widths = [len(_MEANS), n_classes, n_classes]
    means, hits, occurrences, gaps = np.split(sums, np.cumsum(widths), axis=1)
    f1 = np.divide(hits, occurrences, out=np.zeros_like(hits), where=occurrences > 0)
    return {
        **dict(zip(_MEANS, means.T / n_items, strict=True)),
        "macro_f1": f1.sum(axis=1) / (occurrences > 0).sum(axis=1),
        "ece": np.abs(gaps).sum(axis=1) / n_items,
    }
