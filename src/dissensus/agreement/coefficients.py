"""Coefficients of agreement as functions of sums over items.

All but alpha compare the mean difference seen between two labels of an item with the difference
expected by chance, and are 1 - seen / expected; they differ in what chance is:

    percent   no chance at all: 1 - seen
    fleiss    both labels are drawn from the mean shares of the classes
    conger    each is drawn from the shares of another annotator
    brennan-prediger, randolph   both are drawn evenly from the classes
    ac1       labels are drawn evenly, on the items that are hard: as many as the shares suggest

Where nothing is expected to differ, the coefficient is 1 if nothing does (a convention, as for two
annotators who say the same thing always). Alpha is NaN there: it says nothing of data in which
nothing varies.

    J. L. Fleiss. Measuring nominal scale agreement among many raters. Psychol. Bulletin 76, 1971.
    A. J. Conger. Integration and generalization of kappas. Psychological Bulletin 88, 1980.
    R. L. Brennan, D. J. Prediger. Coefficient kappa. Educ. Psychol. Measurement 41, 1981.
    J. J. Randolph. Free-marginal multirater kappa. 2005.
    K. L. Gwet. Computing inter-rater reliability and its variance in the presence of high
    agreement. Brit. J. Math. Stat. Psychology 61, 2008. doi:10.1348/000711006X126600
    K. Krippendorff. Computing Krippendorff's alpha-reliability. 2011.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._relation import Floats
from ._statistics import Sums, Terms
from .differences import Difference

__all__ = ["Formula", "alpha", "conger_chance", "corrected", "linearised_error", "ordinal_alpha"]

Formula = Callable[[Sums, Difference], Floats]  # one number for every weighting

_NOTHING = 1e-13


def seen(sums: Sums) -> Floats:
    """Return the mean difference between two labels of an item; NaN where no item has two."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums.paired > 0, sums.apart / sums.paired, np.nan)


def corrected(apart: Floats, expected: Floats) -> Floats:
    """Return 1 - apart / expected; 1 where nothing is expected to differ and nothing does."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = 1 - apart / expected
    alike = np.where(apart <= _NOTHING, 1.0, np.nan)
    return np.where(expected <= _NOTHING, alike, found)


def percent(sums: Sums, difference: Difference) -> Floats:  # noqa: ARG001
    """Return the mean share of pairs that agree."""
    return 1 - seen(sums)


def fleiss(sums: Sums, difference: Difference) -> Floats:
    """Return Fleiss' kappa, for any number of labels on an item."""
    return corrected(seen(sums), fleiss_chance(_shares(sums), difference)[0])


def gwet(sums: Sums, difference: Difference) -> Floats:
    """Return Gwet's AC1, or AC2 where differences are not all alike."""
    return corrected(seen(sums), gwet_chance(_shares(sums), difference)[0])


def brennan_prediger(sums: Sums, difference: Difference) -> Floats:
    """Return the coefficient of Brennan and Prediger."""
    return corrected(seen(sums), even_chance(_shares(sums), difference)[0])


def alpha(sums: Sums, difference: Difference) -> Floats:
    """Return Krippendorff's alpha; NaN where nothing varies."""
    given = sums.given
    return _alpha(sums.differ, (given * difference.toward(given)).sum(axis=-1), given)


def ordinal_alpha(sums: Sums, difference: Difference) -> Floats:  # noqa: ARG001
    """Return alpha with the squared difference of mean ranks, which depend on the labels."""
    given = sums.given
    with np.errstate(invalid="ignore"):
        share = given / given.sum(axis=-1, keepdims=True)  # ranks by shares: alpha has no unit
    rank = np.cumsum(share, axis=-1) - share / 2 - 0.5
    apart = 2 * (given * rank**2).sum(axis=-1)
    differ = apart - 2 * np.einsum("sck,sc,sk->s", sums.pairs, rank, rank)
    both = given.sum(axis=-1) * apart - 2 * (given * rank).sum(axis=-1) ** 2
    return _alpha(differ, both, given)


def _alpha(differ: Floats, both: Floats, given: Floats) -> Floats:
    """Return 1 - observed / expected from their sums over pairs."""
    n = given.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = 1 - (n - 1) * differ / both
    varied = (given > 0).sum(axis=-1) > 1
    return np.where(varied & (both > _NOTHING * np.maximum(n, 1)), found, np.nan)


def _shares(sums: Sums) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums.share / sums.units[:, None]


def fleiss_chance(shares: Floats, difference: Difference) -> tuple[Floats, Floats]:
    """Return the expected difference, and how every class adds to it."""
    toward = difference.toward(shares)
    return (shares * toward).sum(axis=-1), toward


def gwet_chance(shares: Floats, difference: Difference) -> tuple[Floats, Floats]:
    """Return the expected difference, and how every class adds to it."""
    k = shares.shape[-1]
    even = (k * k - difference.total) / (k * (k - 1)) if k > 1 else np.inf
    with np.errstate(invalid="ignore"):
        chance = np.where(k > 1, even * (shares * (1 - shares)).sum(axis=-1), 1.0)
        return 1 - chance, 1 - even * (1 - shares)


def even_chance(shares: Floats, difference: Difference) -> tuple[Floats, Floats]:
    """Return the expected difference, and how every class adds to it."""
    expected = difference.total / max(shares.shape[-1], 1) ** 2
    return np.full(shares.shape[:-1], expected), np.full(shares.shape, expected)


def conger_chance(shares: Floats, difference: Difference) -> tuple[Floats, Floats, Floats]:
    """Return the expected difference over all pairs of annotators, without looking at pairs.

    Shares are those of the annotators: (annotator, …, class), NaN for those without labels. With
    it come the sum of the shares and how many annotators there are.
    """
    known = ~np.isnan(shares[..., 0])
    shares = np.where(known[..., None], shares, 0)
    count = known.sum(axis=0)
    sum_of = shares.sum(axis=0)
    both = (sum_of * difference.toward(sum_of)).sum(axis=-1)
    alone = (shares * difference.toward(shares)).sum(axis=(0, -1))
    return per_pair(both - alone, count), sum_of, count


def per_pair(total: Floats, count: Any) -> Floats:
    """Return a sum over ordered pairs of annotators for one of them; NaN where there is none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        # Asked for, because rounding may leave something of a sum over no pairs.
        return np.where(count > 1, total / (count * (count - 1)), np.nan)


def linearised_error(terms: Terms, chance: Callable[..., tuple[Floats, Floats]] | None) -> float:
    """Return Gwet's standard error over items: a coefficient as a mean of one number per item.

    Without chance it is that of a plain mean over the items with a pair.
    """
    votes, sums, size = terms.votes, terms.total, terms.votes.size
    n, paired = float(sums.units[0]), float(sums.paired[0])
    if paired < 2:
        return math.nan
    apart = terms.scalars[:, 2]
    if chance is None:
        each = np.where(size > 1, apart - seen(sums)[0], 0)
        return float(np.sqrt((votes.times * each**2).sum() / (paired * (paired - 1))))
    expected, toward = (found[0] for found in chance(_shares(sums), terms.difference))
    if expected <= _NOTHING:
        return math.nan
    value = 1 - float(seen(sums)[0] / expected)
    mine = votes.dot(toward) / np.maximum(size, 1)
    each = n / paired * ((size > 1) - apart / expected)
    each += 2 * (1 - value) * (mine / expected - 1)
    each = np.where(size > 0, each - value, 0)
    return float(np.sqrt((votes.times * each**2).sum() / (n * (n - 1))))
