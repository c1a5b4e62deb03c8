"""Whose answers ignore the items: two hypotheses about all annotators at once.

A correlation that is not significant may be that of somebody who answers at random, or of somebody
with few labels. Fisher's z of every correlation r, with variance v = 1/(n - 3), is explained by

    random      z ~ N(0, v)                                                share pi
    attentive   z ~ N(zeta, v),   zeta ~ N(mu, tau²), cut below 0.1        share 1 - pi

fitted with EM over the crowd, so that the same correlation counts against an annotator where the
others follow the items closely, and not where hardly anybody does. A crowd is small, so there are
priors: pi as after 18 attentive annotators and 2 random ones, mu and tau as after three annotators
at 0.6 with deviations of 0.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_ndtr

from ..base.arrays import Floats

LEAST_LABELS = 8  # of annotators from whom the two hypotheses are learned
_ROUNDS = 60
_CUT = 0.1  # least zeta of an attentive annotator
_PRIOR_RANDOM, _PRIOR_SIZE = 1.0, 18.0  # mode of Beta(2, 18)
_PRIOR_WEIGHT, _PRIOR_MEAN, _PRIOR_SPREAD = 3.0, 0.6, 0.3
_LEAST_SPREAD = 0.15
_LEAST_SHARE, _MOST_SHARE = 0.01, 0.5
_BOTH_ERRORS = 3.29  # 5 % error both ways, in standard deviations
_Z = 1.959963984540054
_MOST, _ONE = 0.95, 1 - 1e-12  # correlation in the mixture, where higher ones say no more


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
    used = np.isfinite(z) & (n_labels >= LEAST_LABELS)
    share, mean, spread = _fit(z[used], v[used])
    weight = np.divide(n_labels - 1, size - 1, where=size > 1, out=np.ones(len(size)))
    apart = max(mean - spread, _CUT)  # zeta of an attentive annotator with a low correlation
    needed = 3 + (_BOTH_ERRORS / apart) ** 2 * np.clip(weight, 0.0, 1.0)
    return Following(
        correlation,
        np.tanh(center - reach),
        np.tanh(center + reach),
        correlation * np.sqrt(np.maximum(size - 1, 0)),
        n_labels,
        expit(_log_odds(z, v, share, mean, spread)),
        np.maximum(np.ceil(needed), LEAST_LABELS + 2.0),
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
    for _ in range(_ROUNDS):
        weight = expit(-_log_odds(z, v, share, mean, spread))  # of the attentive
        share = (len(z) - weight.sum() + _PRIOR_RANDOM) / (len(z) + _PRIOR_SIZE)
        share = float(np.clip(share, _LEAST_SHARE, _MOST_SHARE))
        total = weight.sum() + _PRIOR_WEIGHT
        mean = float((weight @ z + _PRIOR_WEIGHT * _PRIOR_MEAN) / total)
        square = weight @ ((z - mean) ** 2 - v) + _PRIOR_WEIGHT * _PRIOR_SPREAD**2
        spread = float(np.sqrt(max(square / total, _LEAST_SPREAD**2)))
    return share, mean, spread
