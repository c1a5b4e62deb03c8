"""Calibration: probabilities that are right as often as they claim to be.

A model with a latent true class treats the labels of an item as independent given its class. Real
annotators share errors, so its posterior is too sure, the more labels the more. Dividing the log
posterior by a temperature mends this and leaves the most probable class as it is:

    probabilities[i, k] ∝ posterior[i, k] ** (1 / temperature[i])
    temperature[i] = SCALE * (n_labels[i] / 5) ** EXPONENT

Both constants are measured on public sets with known truth (benchmarks/CALIBRATION.md). With
`ENOUGH_GOLD` known items, one further factor is fitted to them.

    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger. On calibration of modern neural networks.
    International Conference on Machine Learning, 2017.
"""

from __future__ import annotations

import numpy as np

from .probability import log_normalize, safe_log
from .arrays import Array, Floats, Integers

SCALE, EXPONENT = 4.0, 0.45
ENOUGH_GOLD = 50  # known items that a factor is fitted to
_LEAST, _MOST = 0.1, 20.0  # of the factor
_FLOOR = 1e-6  # least probability of a known label


def label_temperature(n_labels: Array, scale: float = SCALE) -> Floats:
    """Return the temperature of items with these numbers of labels.

    >>> label_temperature(np.array([1, 5, 20])).round(2).tolist()
    [1.94, 4.0, 7.46]
    """
    return scale * (np.maximum(n_labels, 1) / 5) ** EXPONENT


def temper(posterior: Floats, temperature: Floats) -> Floats:
    """Return a posterior, (item, class), with its log divided by temperatures, (item); 0 stays 0.

    >>> temper(np.array([[0.9, 0.1], [1.0, 0.0]]), np.array([2.0, 2.0])).round(2).tolist()
    [[0.75, 0.25], [1.0, 0.0]]
    """
    log = safe_log(posterior) / temperature[:, None]
    log[posterior == 0] = -np.inf
    return log_normalize(log)[1]


def fit_temperature(probabilities: Floats, truth: Integers) -> float:
    """Return the temperature under which known classes, (item), are most probable.

    Its logarithm has a normal prior with variance one half: few items move it little.
    """
    from scipy.optimize import minimize_scalar

    rows = np.arange(len(truth))

    def loss(log_temperature: float) -> float:
        tempered = temper(probabilities, np.full(len(truth), np.exp(log_temperature)))
        log_likelihood = np.log(np.maximum(tempered[rows, truth], _FLOOR)).sum()
        return log_temperature**2 - float(log_likelihood)

    bounds = (float(np.log(_LEAST)), float(np.log(_MOST)))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
