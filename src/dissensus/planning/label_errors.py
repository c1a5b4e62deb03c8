"""How many inferred labels are wrong, whether that is few enough to stop, and what to check.

The sum of doubts, 1 - confidence, is the stated number of errors. Errors that annotators share
cannot be seen without known labels: on public sets with known truth, the true number differed from
the stated one by a factor whose logarithm has the standard deviation `LOG_SD`
(benchmarks/CALIBRATION.md). With items whose label was checked, drawn at random, the binomial
likelihood of the errors among them is added:

    log factor ~ N(0, LOG_SD² + 1 / stated),   wrong ~ Binomial(checked, factor * stated / items)

Where there are more or fewer errors than stated, low doubts change more than high ones, as if the
labels had another temperature: so are the errors outside a list of the least certain labels
computed. On the same sets, the true number differed from that by a factor whose logarithm has the
standard deviation `LEFT_SD`, besides the spread of counts.

Where labels were checked one by one, each with the doubt that was stated before, stated doubts are
calibrated by them, whatever the order of the checks was, as long as it followed the doubts:

    logit P(wrong) = a + b logit(doubt),   a ~ N(0, shift²),   log b ~ N(0, slope²)

Every check also teaches the model, so what early checks show about its labels holds less and less:
a drifts as a random walk, whose variance grows by drift² while all items are checked. The spreads
were chosen on the same sets; benchmarks/trust/workbench.json has the figures with each set left
out.

A reviewer is right, so checking a label removes its doubt; the items that remove most expected
errors per second come first. Every so often an item is drawn at random instead: how many of the
sure labels are wrong, uncertain ones do not show.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logit, ndtr

from ..base.arrays import Floats, Integers

LOG_SD = 0.49
LEFT_SD = 0.3
COVERAGE = 0.9  # of intervals
DRAWN_EVERY = 5  # items of the queue, of which one is drawn at random

_REACH = 1.645  # standard deviations of such an interval
_FACTORS = np.linspace(-15, 15, 6001)  # logarithms
_LEAST = 1e-9
_LOG_POWERS = (-6.0, 4.0)  # of odds, searched
_SHIFTS, _SLOPES = np.linspace(-4, 4, 81), np.linspace(-1.5, 1.5, 31)  # the latter logarithms
_SUREST, _BINS, _NUMBERS = 1e-6, 140, 300
_BLOCKS = 20  # of items, between which drift is computed


@dataclass(frozen=True)
class LabelErrors:
    """The expected number of wrong labels, with a 90 % interval.

    Attributes
    ----------
    n_items
        Number of labels that may be wrong, without those of which it cannot be told.
    expected, low, high
        How many of them are; NaN where it can be judged of none.
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
        """The expected share of right labels, with its interval; NaN where it cannot be told."""
        if not self.n_items:
            return (math.nan,) * 3 if math.isnan(self.expected) else (1.0, 1.0, 1.0)
        wrong = np.array([self.expected, self.high, self.low]) / self.n_items
        right, low, high = (1 - np.minimum(wrong, 1)).tolist()
        return right, low, high

    def reaches(self, target: float) -> bool:
        """Return whether the accuracy is at least the target, at the lower end of its interval."""
        return self.accuracy[1] >= target


def label_errors(
    confidence: Floats, n_listed: int = 0, *, n_checked: int = 0, n_wrong: int = 0
) -> LabelErrors:
    """Return how many labels are wrong.

    Parameters
    ----------
    confidence
        Calibrated confidence in labels that nobody checked: (item). Labels of which it cannot
        be told, where it is NaN, do not count.
    n_listed
        How many of them, the least certain, will be labelled again and so do not count.
    n_checked, n_wrong
        Number of labels that were checked, of items drawn at random, and of errors among them.

    Examples
    --------
    >>> confidence = np.full(1000, 0.9)
    >>> errors = label_errors(confidence)
    >>> [round(x) for x in (errors.expected, errors.low, errors.high)]
    [100, 44, 228]
    >>> errors = label_errors(confidence, n_checked=100, n_wrong=5)
    >>> [round(x) for x in (errors.expected, errors.low, errors.high)]
    [64, 38, 102]
    """
    identifiable = confidence[~np.isnan(confidence)]
    if len(identifiable) == 0 < len(confidence):
        return LabelErrors(0, math.nan, math.nan, math.nan, n_checked=n_checked)
    confidence = identifiable
    stated = float((1 - confidence).sum())
    n_items = len(confidence)
    if stated <= _LEAST:
        return LabelErrors(n_items - n_listed, 0.0, 0.0, 0.0, n_checked=n_checked)
    rate = np.clip(np.exp(_FACTORS) * stated / n_items, _LEAST, 1 - _LEAST)
    log_density = -(_FACTORS**2) / (2 * (LOG_SD**2 + 1 / stated))
    log_density += n_wrong * np.log(rate) + (n_checked - n_wrong) * np.log1p(-rate)
    density = np.exp(log_density - log_density.max())
    cumulative = density.cumsum() - density / 2
    quantiles = np.array([0.5, (1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    factor = np.exp(np.interp(quantiles, cumulative / density.sum(), _FACTORS))
    wrong = np.minimum(factor * stated, n_items)
    if not n_listed:
        expected, low, high = wrong.tolist()
        return LabelErrors(n_items, expected, low, high, n_checked=n_checked)
    n_left = n_items - n_listed
    remaining = np.array([float(doubts(confidence, number)[n_listed:].sum()) for number in wrong])
    remaining = np.log(np.maximum(remaining, _LEAST))
    spread = _REACH * math.sqrt(LEFT_SD**2 + 1 / max(math.exp(remaining[0]), 1.0))
    ends = np.hypot(remaining[0] - remaining[1:], spread) * (-1, 1) + remaining[0]
    expected, low, high = np.minimum(np.exp([remaining[0], *ends]), n_left).tolist()
    return LabelErrors(n_left, expected, low, high, n_checked=n_checked)


class Checked(NamedTuple):
    """Labels in the order of their checks: the doubt that was stated before, and the result."""

    doubt: Floats
    wrong: npt.NDArray[np.bool_]


class Spread(NamedTuple):
    """How the calibration of stated doubts differs between data, and while items are checked."""

    shift: float
    slope: float
    drift: float


SPREAD = Spread(shift=0.2, slope=0.2, drift=1.4)


def checked_errors(confidence: Floats, checked: Checked, spread: Spread = SPREAD) -> LabelErrors:
    """Return how many labels are wrong that nobody checked, from those that were.

    Parameters
    ----------
    confidence
        Confidence in labels that nobody checked, as in `label_errors`: (item).
    checked
        Checked labels, chosen by their doubt or at random.
    spread
        Of their calibration.

    Examples
    --------
    >>> half = Checked(np.full(80, 0.1), np.arange(80) % 20 == 0)  # half as many errors as stated
    >>> errors = checked_errors(np.full(1000, 0.9), half)
    >>> [round(x) for x in (errors.expected, errors.low, errors.high)]
    [61, 26, 125]
    """
    identifiable = confidence[~np.isnan(confidence)]
    if len(identifiable) == 0 < len(confidence):
        return LabelErrors(0, math.nan, math.nan, math.nan, n_checked=len(checked.doubt))
    n_items, count = len(identifiable), _binned(1 - identifiable)
    density = _calibration(checked, n_items + len(checked.doubt), spread)
    rate = np.exp(_log_rates()[0])
    mean, variance = rate @ count, (rate * (1 - rate)) @ count  # (shift, slope)
    deviation = np.sqrt(variance + 1 / 12)  # a count is a whole number
    numbers = np.linspace(0, n_items, _NUMBERS) ** 2 / max(n_items, 1)
    cumulative = np.array([(density * ndtr((x + 0.5 - mean) / deviation)).sum() for x in numbers])
    quantiles = np.array([0.5, (1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    expected, low, high = np.interp(quantiles, cumulative, numbers).tolist()
    return LabelErrors(n_items, expected, low, high, n_checked=len(checked.doubt))


def _calibration(checked: Checked, n_items: int, spread: Spread) -> Floats:
    """Return the posterior probability of every shift and slope: (shift, slope)."""
    log_density = -((_SHIFTS[:, None] / spread.shift) ** 2 + (_SLOPES / spread.slope) ** 2) / 2
    log_wrong, log_right = _log_rates()
    size = math.ceil(n_items / _BLOCKS)
    for start in range(0, len(checked.doubt), size):
        block = slice(start, start + size)
        doubt, wrong = checked.doubt[block], checked.wrong[block]
        log_density = log_density + log_wrong @ _binned(doubt[wrong])
        log_density += log_right @ _binned(doubt[~wrong])
        density = np.exp(log_density - log_density.max())
        drift = spread.drift * math.sqrt(len(doubt) / n_items) / (_SHIFTS[1] - _SHIFTS[0])
        density = gaussian_filter1d(density, drift, 0, mode="nearest") if drift else density
        log_density = np.log(np.maximum(density, np.finfo(float).tiny))
    return np.asarray(density / density.sum())


@cache
def _log_rates() -> tuple[Floats, Floats]:
    """Return log probabilities that labels of a bin are wrong, and right: (shift, slope, bin)."""
    edges = _edges()
    odds = _SHIFTS[:, None, None] + np.exp(_SLOPES)[:, None] * (edges[1:] + edges[:-1]) / 2
    return log_expit(odds), log_expit(-odds)


def _edges() -> Floats:
    """Return the edges of bins of log odds."""
    return np.linspace(logit(_SUREST), -logit(_SUREST), _BINS + 1)


def _binned(doubt: Floats) -> Floats:
    """Return how many doubts are in each bin."""
    odds = logit(np.clip(doubt, _SUREST, 1 - _SUREST))
    return np.histogram(odds, _edges())[0].astype(np.float64)


def doubts(confidence: Floats, wrong: float) -> Floats:
    """Return the probability that each label is wrong, the least certain first.

    They add up to a number of wrong labels, and the odds of each, relative to the least certain,
    are a power of the stated ones.

    >>> doubts(np.array([0.99, 0.9, 0.5]), 0.8).round(2).tolist()
    [0.5, 0.23, 0.07]
    """
    doubt = np.clip(1 - np.sort(confidence), _LEAST, 1 - _LEAST)
    most = logit(max(float(doubt.max(initial=0.0)), 0.5))
    odds = logit(doubt) - most

    def tempered(log_power: float) -> Floats:
        return expit(most + math.exp(log_power) * odds)

    def excess(log_power: float) -> float:
        return float(tempered(log_power).sum()) - wrong

    ends = [excess(end) for end in _LOG_POWERS]
    if ends[0] > 0 > ends[1]:
        return tempered(brentq(excess, *_LOG_POWERS, xtol=1e-4))
    return np.minimum(doubt * wrong / doubt.sum(), 1.0)


def checks_needed(target: float) -> int:
    """Return how many known items without an error among them would show that it is reached.

    >>> checks_needed(0.95)
    59
    """
    return math.ceil(math.log((1 - COVERAGE) / 2) / math.log(target))


@dataclass(frozen=True, eq=False)
class Review:
    """What is left to check.

    Attributes
    ----------
    order
        Items that nobody checked, by code, the most expected errors removed per second first, and
        at last those of which it cannot be told whether they are right.
    errors
        How many of their labels are wrong.
    n_items
        Number of all labelled items that can be judged.
    n_needed
        How many of them to check in this order, so that the target is expected to be reached.
    seconds
        How long these take.
    target
        The share of right labels to reach.
    """

    order: Integers
    errors: LabelErrors
    n_items: int
    n_needed: int
    seconds: float
    target: float

    @property
    def wrong(self) -> tuple[float, float, float]:
        """The expected share of wrong labels among all items, with its 90 % interval."""
        errors, n_items = self.errors, max(self.n_items, 1)
        return errors.expected / n_items, errors.low / n_items, errors.high / n_items

    @property
    def stop(self) -> bool:
        """Whether the target is reached, at the upper end of the interval of wrong labels.

        So many labels must have been checked as would show it without any doubts stated.
        """
        enough = not len(self.order) or self.errors.n_checked >= checks_needed(self.target)
        return enough and self.wrong[2] <= 1 - self.target


def plan_review(
    certainty: Floats,
    unchecked: npt.NDArray[np.bool_],
    *,
    n_items: int | None = None,
    seconds: Floats | None = None,
    checked: Checked | None = None,
    target: float = 0.95,
) -> Review:
    """Return which labels to check, and how many are wrong.

    Parameters
    ----------
    certainty
        Calibrated confidence in every label, NaN where it cannot be told: (item).
    unchecked
        Which labels nobody checked: (item).
    n_items
        Number of labelled items; by default all.
    seconds
        How long it takes to check every item; by default the same for all.
    checked
        Labels that were checked, with the certainty before.
    target
        The share of right labels to reach.

    Examples
    --------
    >>> certainty = np.array([0.99, 0.6, 0.9, 1.0])
    >>> plan_review(certainty, np.array([True, True, True, False])).order.tolist()
    [1, 2, 0]
    """
    codes = np.flatnonzero(unchecked)
    n_items = len(certainty) if n_items is None else n_items
    errors = errors_left(certainty[codes], checked)
    identifiable = ~np.isnan(certainty[codes])
    codes, unidentifiable = codes[identifiable], codes[~identifiable]
    n_items -= len(unidentifiable)
    item_seconds = np.ones(len(certainty)) if seconds is None else seconds
    rising = codes[np.argsort(certainty[codes], kind="stable")]
    doubt = doubts(certainty[codes], errors.expected) if len(codes) else np.zeros(0)
    best = np.argsort(-doubt / item_seconds[rising], kind="stable")
    order, remaining = rising[best], doubt.sum() - np.cumsum(doubt[best])
    n_needed = 0
    if len(codes) and doubt.sum() > (1 - target) * n_items:
        n_needed = int(np.argmax(remaining <= (1 - target) * n_items)) + 1
    spent = float(item_seconds[order[:n_needed]].sum())
    return Review(
        order=np.concatenate([order, unidentifiable]),
        errors=errors,
        n_items=n_items,
        n_needed=n_needed,
        seconds=spent,
        target=target,
    )


def errors_left(certainty: Floats, checked: Checked | None) -> LabelErrors:
    """Return how many labels are wrong that nobody checked."""
    if checked is None or not len(certainty):
        return label_errors(certainty)
    return checked_errors(certainty, checked)


def random_order(items: Sequence[str], seed: int = 0) -> Integers:
    """Return the items by code in a random order that stays the same when others come.

    >>> random_order(["a", "b", "c"]).tolist() == random_order(["a", "b", "c"]).tolist()
    True
    """
    key = seed.to_bytes(8, "big", signed=True)
    names = (item.encode("utf-8", "surrogatepass") for item in items)
    hashes = b"".join(hashlib.blake2b(name, digest_size=8, key=key).digest() for name in names)
    return np.argsort(np.frombuffer(hashes, dtype=">u8"), kind="stable")
