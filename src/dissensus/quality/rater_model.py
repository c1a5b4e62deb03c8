"""A model of ordered and numeric labels, and the probability that answers ignore the items.

Annotators have a severity, a use of the scale and a noise. Annotator j rates item i, whose standing
on the scale is theta, as

    y[i, j] = level[j] + slope[j] * theta[i] + error,   theta ~ N(0, 1),   error ~ N(0, noise[j]²)

on labels that are standardized over the crowd. Annotators are compared with the posterior mean of
theta given the labels of all others, so that nobody agrees with themselves, and a regression on it
needs no correction for its error. Levels and slopes are shrunk to their mean where they weigh other
annotators; they are reported without shrinkage, with intervals.

Severity and scale use leave the correlation with the others as it is, and answers that do not
depend on the item have expectation 0, whatever their distribution. Before the fit most of
everybody's own mean and deviation is taken out: shrinkage of one outlying rater would otherwise
move the others.

A correlation that is not significant may be that of somebody who answers at random, or of somebody
with few labels. So there are two hypotheses about all annotators at once: Fisher's z of every
correlation r, of classes too, with variance v = 1/(n - 3), is explained by

    random      z ~ N(0, v)                                                share pi
    attentive   z ~ N(zeta, v),   zeta ~ N(mu, tau²), cut below 0.1        share 1 - pi

fitted with EM over the crowd, so that the same correlation counts against an annotator where the
others follow the items closely, and not where hardly anybody does. A crowd is small, so there are
priors: pi as after 18 attentive annotators and 2 random ones, mu and tau as after three annotators
at 0.6 with deviations of 0.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_ndtr, stdtrit

from ..answers.base import Relation
from ..base.arrays import Floats, FrozenArrays, Integers
from ..metrics.statistics import repeats_previous
from .correlation import rating_correlations
from .label_scores import sum_by

Mask = npt.NDArray[np.bool_]

LEAST_LABELS = 8  # of annotators from whom the two hypotheses are learned

_ROUNDS = 30
_SPREAD = 0.05  # least variance of levels and of slopes
_PRIOR_LABELS = 5.0  # pseudo-labels with the noise of the crowd
_LEAST_NOISE = 0.1  # variance, relative to the crowd's
_OWN = 2.0  # pseudo-labels of the crowd in everybody's mean and deviation
_LEAST_SLOPE = 0.02  # where it weighs a label
_CONFIDENCE = 0.99  # of the intervals of levels and slopes

_ROUNDS_OF_HYPOTHESES = 60
_CUT = 0.1  # least zeta of an attentive annotator
_PRIOR_RANDOM, _PRIOR_SIZE = 1.0, 18.0  # mode of Beta(2, 18)
_PRIOR_WEIGHT, _PRIOR_MEAN, _PRIOR_SPREAD = 3.0, 0.6, 0.3
_LEAST_SPREAD = 0.15
_LEAST_SHARE, _MOST_SHARE = 0.01, 0.5
_BOTH_ERRORS = 3.29  # 5 % error both ways, in standard deviations
_Z = 1.959963984540054
_MOST, _ONE = 0.95, 1 - 1e-12  # correlation in the mixture, where higher ones say no more


@dataclass(frozen=True, eq=False)
class RaterModel(FrozenArrays):
    """The fitted model; all are in units of the standard deviation of all labels.

    An annotator's several labels of an item are one answer, their mean. NaN where undefined.
    """

    n_answers: Integers  # (annotator): on items that others answered, too
    correlation: Floats  # (annotator): mean of Pearson's and Spearman's with the others
    level: Floats  # (annotator): mean label of an item at theta = 0
    level_error: Floats  # (annotator): reach of the 99 % interval
    slope: Floats  # (annotator)
    slope_error: Floats  # (annotator): reach of the 99 % interval
    noise: Floats  # (annotator): standard deviation


def fit_rater_model(answers: Relation, value: Floats, gold: Floats | None = None) -> RaterModel:
    """Return the model of numbers, one for every answer.

    Parameters
    ----------
    answers
        Who answered on which item.
    value
        The numbers: (answer).
    gold
        Known values: (item), NaN where unknown. They count as those of a further annotator with
        little noise.
    """
    n_annotators = answers.n_annotators
    item, annotator, y = _one_per_pair(answers, value)
    if gold is not None and np.isfinite(gold).any():
        gold_items = np.flatnonzero(np.isfinite(gold))
        item = np.append(item, gold_items)
        annotator = np.append(annotator, np.full(len(gold_items), n_annotators))
        y = np.append(y, gold[gold_items])
    own = annotator < n_annotators
    deviation = float(y[own].std()) if own.any() else 0.0
    y = (y - (y[own].mean() if own.any() else 0.0)) / (deviation or 1.0)
    shared = np.bincount(item, minlength=answers.n_items)[item] > 1
    leveled = _leveled(annotator, y, n_annotators + 1)
    mean, variance = _others(
        item, annotator, leveled, shared, gold=n_annotators, n_items=answers.n_items
    )
    compared = own & shared
    annotator, y, mean, variance = (
        annotator[compared],
        y[compared],
        mean[compared],
        variance[compared],
    )
    return RaterModel(
        n_answers=np.bincount(annotator, minlength=n_annotators),
        correlation=rating_correlations(annotator, y, mean, n_annotators),
        **_regressions(annotator, y, m=mean, v=variance, n_annotators=n_annotators),
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
    starts = np.flatnonzero(new)
    if len(starts) == len(new):
        y = value.astype(float)
    else:
        pair = np.cumsum(new) - 1
        y = np.bincount(pair, value) / np.bincount(pair)
    return answers.item[starts].astype(np.int64), answers.annotator[starts].astype(np.int64), y


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
        weighted = weight[annotator] * (y - level[annotator])
        total = 1 + np.bincount(item, precision[annotator], n_items)
        theta = np.bincount(item, weighted, n_items)
        posterior = (theta / total)[answered]
        center = float(posterior.mean()) if len(posterior) else 0.0
        spread = np.sqrt(posterior.var() + (1 / total[answered]).mean()) if len(posterior) else 1.0
        others_precision = np.maximum(total[item] - precision[annotator], 1.0)
        mean = ((theta[item] - weighted) / others_precision - center) / spread
        variance = 1 / (others_precision * spread**2)

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
        residual = sums(error**2 - slope[compared] ** 2 * v)
        pool = max(float(residual.sum() / max(count.sum(), 1)), 1e-3)
        noise = np.maximum(
            (residual + _PRIOR_LABELS * pool) / (count + _PRIOR_LABELS), _LEAST_NOISE * pool
        )
        noise[gold] = _LEAST_NOISE * pool
    return mean, variance


def _regressions(
    annotator: Integers, y: Floats, m: Floats, v: Floats, n_annotators: int
) -> dict[str, Floats]:
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
    estimates = {"level": level, "slope": slope, "noise": noise}
    reaches = {"level_error": level_error, "slope_error": slope_error}
    return reaches | {name: np.where(defined, values, np.nan) for name, values in estimates.items()}


class Following(NamedTuple):
    """How far answers follow the items; NaN where undefined."""

    correlation: Floats  # (annotator), as all others
    low: Floats  # of the 95 % interval
    high: Floats
    z: Floats  # correlation in standard deviations of random answers
    n_labels: Floats  # compared with others
    p_random: Floats  # probability that answers ignore the items
    needed: Floats  # labels from which on random and attentive annotators are separated


def following(correlation: Floats, size: Floats, n_labels: Floats) -> Following:
    """Return intervals of correlations, and the probability that answers are random.

    Parameters
    ----------
    correlation
        Of the answers of every annotator with the others: (annotator).
    size
        The number of labels that it counts like: (annotator). Its variance under random answers
        is 1/(size - 1).
    n_labels
        Number of labels that were compared: (annotator).
    """
    v = 1 / np.maximum(size - 3, 1)
    reach = _Z * np.sqrt(v)
    center = np.arctanh(np.clip(correlation, -_ONE, _ONE))
    z = np.arctanh(np.clip(correlation, -_MOST, _MOST))
    judged = np.isfinite(z) & (n_labels >= LEAST_LABELS)
    share, mean, spread = _fit(z[judged], v[judged])
    weight = np.divide(n_labels - 1, size - 1, where=size > 1, out=np.ones(len(size)))
    separation = max(mean - spread, _CUT)  # zeta of an attentive annotator with a low correlation
    needed = 3 + (_BOTH_ERRORS / separation) ** 2 * np.clip(weight, 0.0, 1.0)
    return Following(
        correlation=correlation,
        low=np.tanh(center - reach),
        high=np.tanh(center + reach),
        z=correlation * np.sqrt(np.maximum(size - 1, 0)),
        n_labels=n_labels,
        p_random=expit(_log_odds(z, v, share=share, mean=mean, spread=spread)),
        needed=np.maximum(np.ceil(needed), LEAST_LABELS + 2.0),
    )


def _log_odds(z: Floats, v: Floats, share: float, mean: float, spread: float) -> Floats:
    """Return the log odds of random against attentive answers."""
    inner = 1 / (1 / spread**2 + 1 / v)  # variance of zeta given z, without the cut
    center = inner * (mean / spread**2 + z / v)
    random = -0.5 * (np.log(v) + z**2 / v)
    total = spread**2 + v
    attentive = -0.5 * (np.log(total) + (z - mean) ** 2 / total)
    attentive += log_ndtr((center - _CUT) / np.sqrt(inner)) - log_ndtr((mean - _CUT) / spread)
    return np.log(share) - np.log1p(-share) + random - attentive


def _fit(z: Floats, v: Floats) -> tuple[float, float, float]:
    """Return the share of random annotators, and mean and spread of the attentive ones."""
    share, mean, spread = 0.1, _PRIOR_MEAN, _PRIOR_SPREAD
    for _ in range(_ROUNDS_OF_HYPOTHESES):
        weight = expit(-_log_odds(z, v, share=share, mean=mean, spread=spread))  # of the attentive
        share = (len(z) - weight.sum() + _PRIOR_RANDOM) / (len(z) + _PRIOR_SIZE)
        share = float(np.clip(share, _LEAST_SHARE, _MOST_SHARE))
        total = weight.sum() + _PRIOR_WEIGHT
        mean = float((weight @ z + _PRIOR_WEIGHT * _PRIOR_MEAN) / total)
        square = weight @ ((z - mean) ** 2 - v) + _PRIOR_WEIGHT * _PRIOR_SPREAD**2
        spread = float(np.sqrt(max(square / total, _LEAST_SPREAD**2)))
    return share, mean, spread
