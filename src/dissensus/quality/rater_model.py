"""A model of ordered and numeric labels: severity, scale use and noise of every annotator.

Annotator j rates item i, whose standing on the scale is theta, as

    y[i, j] = level[j] + slope[j] * theta[i] + error,   theta ~ N(0, 1),   error ~ N(0, noise[j]²)

on labels that are standardized over the crowd. Annotators are compared with the posterior mean of
theta given the labels of all others, so that nobody agrees with themselves, and a regression on it
needs no correction for its error. Levels and slopes are shrunk to their mean where they weigh
other annotators; they are reported without
shrinkage, with intervals.

Severity and scale use leave the correlation with the others as it is, and answers that do not
depend on the item have expectation 0, whatever their distribution. Before the fit most of
everybody's own mean and deviation is taken out: shrinkage of one outlying rater would otherwise
move the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from ..base.arrays import Floats, FrozenArrays, Integers
from ..metrics.votes import repeats_previous
from ..answers.base import Relation
from .correlations import rating_correlations
from .label_sums import sum_by

Mask = npt.NDArray[np.bool_]

_ROUNDS = 30
_SPREAD = 0.05  # least variance of levels and of slopes
_PRIOR_LABELS = 5.0  # pseudo-labels with the noise of the crowd
_LEAST_NOISE = 0.1  # variance, relative to the crowd's
_OWN = 2.0  # pseudo-labels of the crowd in everybody's mean and deviation
_LEAST_SLOPE = 0.02  # where it weighs a label
_CONFIDENCE = 0.99  # of the intervals of levels and slopes


@dataclass(frozen=True, eq=False)
class RaterModel(FrozenArrays):
    """The fitted model; all are in units of the standard deviation of all labels.

    An annotator's several labels of an item are one answer, their mean. NaN where undefined.
    """

    annotator: Integers  # (answer)
    score: Floats  # (answer): standardized
    others: Floats  # (answer): posterior mean of theta without the annotator; NaN without others
    n_answers: Integers  # (annotator): on items that others answered, too
    correlation: Floats  # (annotator): mean of Pearson's and Spearman's with the others
    level: Floats  # (annotator): mean label of an item at theta = 0
    level_error: Floats  # (annotator): reach of the 99 % interval
    slope: Floats  # (annotator)
    slope_error: Floats  # (annotator): reach of the 99 % interval
    noise: Floats  # (annotator): standard deviation


def fit_rater_model(answers: Relation, value: Floats, known: Floats | None = None) -> RaterModel:
    """Return the model of numbers, one for every answer.

    Parameters
    ----------
    answers
        Who answered on which item.
    value
        The numbers: (answer).
    known
        Known values: (item), NaN where unknown. They count as those of a further annotator with
        little noise.
    """
    n_annotators = answers.n_annotators
    item, annotator, y = _one_per_pair(answers, value)
    if known is not None and np.isfinite(known).any():
        gold = np.flatnonzero(np.isfinite(known))
        item = np.append(item, gold)
        annotator = np.append(annotator, np.full(len(gold), n_annotators))
        y = np.append(y, known[gold])
    own = annotator < n_annotators
    deviation = float(y[own].std()) if own.any() else 0.0
    y = (y - (y[own].mean() if own.any() else 0.0)) / (deviation or 1.0)
    shared = np.bincount(item, minlength=answers.n_items)[item] > 1
    leveled = _leveled(annotator, y, n_annotators + 1)
    mean, variance = _others(item, annotator, leveled, shared, n_annotators, answers.n_items)
    annotator, y, mean, variance = annotator[own], y[own], mean[own], variance[own]
    shared = shared[own]
    compared = annotator[shared]
    others = np.where(shared, mean, np.nan)
    count = np.bincount(compared, minlength=n_annotators)
    return RaterModel(
        annotator,
        y,
        others,
        count,
        rating_correlations(compared, y[shared], mean[shared], n_annotators),
        *_regressions(compared, y[shared], mean[shared], variance[shared], n_annotators),
    )


def _leveled(annotator: Integers, y: Floats, n: int) -> Floats:
    """Return standardized labels with most of everybody's own mean and deviation taken out.

    So that a shift or a wider range of one annotator moves nobody else; pseudo-labels of the crowd
    keep those with few labels near it.
    """
    count = np.bincount(annotator, minlength=n)
    mean = sum_by(annotator, y, n) / (count + _OWN)
    deviations = y - (sum_by(annotator, y, n) / np.maximum(count, 1))[annotator]
    square = sum_by(annotator, deviations**2, n)
    within = max(float(square.sum() / max(len(y), 1)), 1e-9)
    scale = np.sqrt((square + _OWN * within) / ((count + _OWN) * within))
    return (y - mean[annotator]) / scale[annotator]


def _one_per_pair(answers: Relation, value: Floats) -> tuple[Integers, Integers, Floats]:
    """Return items, annotators and mean values of every pair of an item and an annotator."""
    new = ~repeats_previous(answers)
    first = np.flatnonzero(new)
    if len(first) == len(new):
        y = value.astype(float)
    else:
        pair = np.cumsum(new) - 1
        y = np.bincount(pair, value) / np.bincount(pair)
    return answers.item[first].astype(np.int64), answers.annotator[first].astype(np.int64), y


def _others(
    item: Integers, annotator: Integers, y: Floats, shared: Mask, gold: int, n_items: int
) -> tuple[Floats, Floats]:
    """Return mean and variance of theta without the annotator of every answer."""
    n = gold + 1  # known values have this code
    answered = np.bincount(item, minlength=n_items) > 0
    compared = annotator[shared]
    x_y = y[shared]
    count = np.bincount(compared, minlength=n).astype(float)
    active = count > 0
    slope, level, noise = np.full(n, 0.7), np.zeros(n), np.full(n, 0.5)  # noise: variance
    mean, variance = np.zeros(len(y)), np.ones(len(y))

    def sums(values: Floats) -> Floats:
        return sum_by(compared, values, n)

    for _ in range(_ROUNDS):
        weight = np.maximum(slope, _LEAST_SLOPE) / noise
        precision = weight * np.maximum(slope, _LEAST_SLOPE)
        given = weight[annotator] * (y - level[annotator])
        total = 1 + np.bincount(item, precision[annotator], n_items)
        theta = np.bincount(item, given, n_items)
        posterior = (theta / total)[answered]
        center = float(posterior.mean()) if len(posterior) else 0.0
        spread = np.sqrt(posterior.var() + (1 / total[answered]).mean()) if len(posterior) else 1.0
        rest = np.maximum(total[item] - precision[annotator], 1.0)
        mean = ((theta[item] - given) / rest - center) / spread
        variance = 1 / (rest * spread**2)

        m, v = mean[shared], variance[shared]
        w = 1 / (noise[compared] + slope[compared] ** 2 * v)
        typical = float(slope[active].mean()) if active.any() else 0.0
        ridge_slope, ridge_level = (
            1 / max(float(values[active].var()) if active.any() else 0.0, _SPREAD)
            for values in (slope, level)
        )
        sw, sm, smm = sums(w) + ridge_level, sums(w * m), sums(w * m * m) + ridge_slope
        sy, smy = sums(w * x_y), sums(w * m * x_y) + ridge_slope * typical
        determinant = sw * smm - sm**2
        slope, level = (sw * smy - sm * sy) / determinant, (smm * sy - sm * smy) / determinant
        error = x_y - level[compared] - slope[compared] * m
        left = sums(error**2 - slope[compared] ** 2 * v)
        pool = max(float(left.sum() / max(count.sum(), 1)), 1e-3)
        noise = np.maximum(
            (left + _PRIOR_LABELS * pool) / (count + _PRIOR_LABELS), _LEAST_NOISE * pool
        )
        noise[gold] = _LEAST_NOISE * pool
    return mean, variance


def _regressions(
    annotator: Integers, y: Floats, m: Floats, v: Floats, n_annotators: int
) -> tuple[Floats, ...]:
    """Return level and slope with the reach of their intervals, and noise of every annotator."""

    def sums(values: Floats) -> Floats:
        return sum_by(annotator, values, n_annotators)

    count = sums(np.ones(len(y)))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_m, mean_y = sums(m) / count, sums(y) / count
        dm, dy = m - mean_m[annotator], y - mean_y[annotator]
        square = sums(dm * dm)
        slope = np.where(square > 1e-9, sums(dm * dy) / square, np.nan)
        level = mean_y - slope * mean_m
        error = sums((dy - slope[annotator] * dm) ** 2) / (count - 2)
        t = stdtrit(np.maximum(count - 2, 1), (1 + _CONFIDENCE) / 2)
        defined = count > 2
        slope_error = np.where(defined, t * np.sqrt(error / square), np.nan)
        level_error = np.where(
            defined, t * np.sqrt(error * (1 / count + mean_m**2 / square)), np.nan
        )
        noise = np.sqrt(np.maximum(error - slope**2 * sums(v) / count, 0.0))
    slope, level, noise = (np.where(defined, values, np.nan) for values in (slope, level, noise))
    return level, level_error, slope, slope_error, noise
