"""How many inferred labels are wrong, with an interval, and whether that is few enough to stop.

The sum of doubts, 1 - confidence, is the stated number of errors. Errors that annotators share
cannot be seen without known labels: on public sets with known truth, the true number differed from
the stated one by a factor whose logarithm has the standard deviation `LOG_SD`
(benchmarks/CALIBRATION.md). With items whose label was checked, drawn at random, the binomial
likelihood of the errors among them is added:

    log factor ~ N(0, LOG_SD² + 1 / stated),   wrong ~ Binomial(checked, factor * stated / items)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ._relation import Floats

LOG_SD = 0.47
COVERAGE = 0.9  # of intervals
_FACTORS = np.linspace(-15, 15, 6001)  # logarithms
_LEAST = 1e-9


@dataclass(frozen=True)
class LabelErrors:
    """The expected number of wrong labels, with a 90 % interval.

    Attributes
    ----------
    n_items
        Number of labels that may be wrong.
    expected, low, high
        How many of them are.
    n_checked
        Number of checked labels behind it.
    """

    n_items: int
    expected: float
    low: float
    high: float
    n_checked: int = 0

    @property
    def accuracy(self) -> tuple[float, float, float]:
        """The expected share of right labels, with its interval."""
        if not self.n_items:
            return 1.0, 1.0, 1.0
        wrong = np.array([self.expected, self.high, self.low]) / self.n_items
        right, low, high = (1 - np.minimum(wrong, 1)).tolist()
        return right, low, high

    def reaches(self, target: float) -> bool:
        """Return whether the accuracy is at least the target, at the lower end of its interval."""
        return self.accuracy[1] >= target


def label_errors(
    confidence: Floats, listed: Floats | None = None, *, n_checked: int = 0, n_wrong: int = 0
) -> LabelErrors:
    """Return how many labels are wrong.

    Parameters
    ----------
    confidence
        Calibrated confidence in labels that nobody checked: (item).
    listed
        Confidence in those among them that will be labelled again, and so do not count.
    n_checked, n_wrong
        Number of labels that were checked, of items drawn at random, and of errors among them.

    Examples
    --------
    >>> confidence = np.full(1000, 0.9)
    >>> errors = label_errors(confidence)
    >>> [round(x) for x in (errors.expected, errors.low, errors.high)]
    [100, 45, 220]
    >>> errors = label_errors(confidence, n_checked=100, n_wrong=5)
    >>> [round(x) for x in (errors.expected, errors.low, errors.high)]
    [65, 39, 103]
    """
    stated = float((1 - confidence).sum())
    n_items = len(confidence)
    if stated <= _LEAST:
        return LabelErrors(n_items, 0.0, 0.0, 0.0, n_checked)
    rate = np.clip(np.exp(_FACTORS) * stated / n_items, _LEAST, 1 - _LEAST)
    log_density = -(_FACTORS**2) / (2 * (LOG_SD**2 + 1 / stated))
    log_density += n_wrong * np.log(rate) + (n_checked - n_wrong) * np.log1p(-rate)
    upto = np.exp(log_density - log_density.max()).cumsum()
    quantiles = np.array([0.5, (1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    factor = np.exp(np.interp(quantiles, upto / upto[-1], _FACTORS))
    left = stated if listed is None else stated - float((1 - listed).sum())
    n_left = n_items - (0 if listed is None else len(listed))
    expected, low, high = np.minimum(factor * left, n_left).tolist()
    return LabelErrors(n_left, expected, low, high, n_checked)


def checks_needed(target: float) -> int:
    """Return how many known items without an error among them would show that it is reached.

    >>> checks_needed(0.95)
    59
    """
    return math.ceil(math.log((1 - COVERAGE) / 2) / math.log(target))
