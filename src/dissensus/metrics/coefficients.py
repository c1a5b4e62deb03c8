"""Coefficients of agreement as functions of sufficient statistics, and the table of measures.

All but alpha compare the mean observed difference between two labels of an item with the difference
expected by chance, and are 1 - observed / expected; they differ in the model of chance agreement:

    percent   not corrected: 1 - observed
    fleiss    both labels are drawn from the mean class proportions
    conger    each is drawn from the label marginals of a different annotator
    brennan-prediger, randolph   both are drawn uniformly from the classes
    ac1       labels are drawn uniformly on hard items, as many as the proportions suggest

Where no difference is expected, the coefficient is 1 if none is observed (a convention: two
annotators who always give one and the same class). Alpha is NaN there: it is undefined for data
without variation.

    J. L. Fleiss. Measuring nominal scale agreement among many raters. Psychol. Bulletin 76, 1971.
    A. J. Conger. Integration and generalization of kappas. Psychological Bulletin 88, 1980.
    R. L. Brennan, D. J. Prediger. Coefficient kappa. Educ. Psychol. Measurement 41, 1981.
    J. J. Randolph. Free-marginal multirater kappa. 2005.
    K. L. Gwet. Computing inter-rater reliability and its variance in the presence of high
    agreement. Brit. J. Math. Stat. Psychology 61, 2008. doi:10.1348/000711006X126600
    K. Krippendorff. Computing Krippendorff's alpha-reliability. 2011.

>>> find_measure("KrippendorffAlpha").name, find_measure("gwet").name
('alpha', 'ac1')
>>> find_measure("kapa")
Traceback (most recent call last):
dissensus.errors.MethodError: no measure 'kapa'; did you mean kappa?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from ..base.arrays import Floats
from ..errors import MethodError
from ..registry import find_by_name, load_plug_ins
from .statistics import Difference, ItemStatistics, SufficientStatistics

Expected = Callable[[Floats, Difference], tuple[Floats, Floats]]
_PLUG_INS = "dissensus.measures"  # the group of entry points

Formula = Callable[[SufficientStatistics, Difference], Floats]  # one number for every weighting

_NOTHING = 1e-13


def corrected(observed: Floats, expected: Floats) -> Floats:
    """Return 1 - apart / expected; 1 where nothing is expected to differ and nothing does."""
    with np.errstate(invalid="ignore", divide="ignore"):
        value = 1 - observed / expected
    alike = np.where(observed <= _NOTHING, 1.0, np.nan)
    return np.where(expected <= _NOTHING, alike, value)


def percent(totals: SufficientStatistics, difference: Difference) -> Floats:  # noqa: ARG001
    """Return the mean share of pairs that agree."""
    return 1 - totals.observed


def alpha(totals: SufficientStatistics, difference: Difference) -> Floats:
    """Return Krippendorff's alpha; NaN where nothing varies."""
    counts = totals.labels
    return _alpha(totals.differ, (counts * difference.toward(counts)).sum(axis=-1), counts)


def ordinal_alpha(totals: SufficientStatistics, difference: Difference) -> Floats:  # noqa: ARG001
    """Return alpha with the squared difference of mean ranks, which depend on the labels."""
    counts = totals.labels
    with np.errstate(invalid="ignore"):
        share = counts / counts.sum(axis=-1, keepdims=True)  # ranks by shares: alpha has no unit
    rank = np.cumsum(share, axis=-1) - share / 2 - 0.5
    spread = 2 * (counts * rank**2).sum(axis=-1)
    differ = spread - 2 * np.einsum("sck,sc,sk->s", totals.pairs, rank, rank)
    expected = counts.sum(axis=-1) * spread - 2 * (counts * rank).sum(axis=-1) ** 2
    return _alpha(differ, expected, counts)


def _alpha(differ: Floats, expected: Floats, counts: Floats) -> Floats:
    """Return 1 - observed / expected from their sums over pairs."""
    n = counts.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = 1 - (differ / n) / (expected / (n * (n - 1)))
    varied = (counts > 0).sum(axis=-1) > 1
    return np.where(varied & (expected > _NOTHING * np.maximum(n, 1)), value, np.nan)


def fleiss_expected(shares: Floats, difference: Difference) -> tuple[Floats, Floats]:
    """Return the expected difference, and the contribution of every class."""
    toward = difference.toward(shares)
    return (shares * toward).sum(axis=-1), toward


def gwet_expected(shares: Floats, difference: Difference) -> tuple[Floats, Floats]:
    """Return the expected difference, and the contribution of every class."""
    k = shares.shape[-1]
    even = (k * k - difference.total) / (k * (k - 1)) if k > 1 else np.inf
    with np.errstate(invalid="ignore"):
        agreement = np.where(k > 1, even * (shares * (1 - shares)).sum(axis=-1), 1.0)
        return 1 - agreement, 1 - even * (1 - shares)


def even_expected(shares: Floats, difference: Difference) -> tuple[Floats, Floats]:
    """Return the expected difference, and the contribution of every class."""
    expected = difference.total / max(shares.shape[-1], 1) ** 2
    return np.full(shares.shape[:-1], expected), np.full(shares.shape, expected)


def conger_expected(shares: Floats, difference: Difference) -> tuple[Floats, Floats, Floats]:
    """Return the expected difference over all pairs of annotators, without a loop over pairs.

    Shares are the label marginals: (annotator, …, class), NaN for annotators without labels. Also
    returns the sum of the shares and the number of annotators.
    """
    has_labels = ~np.isnan(shares[..., 0])
    shares = np.where(has_labels[..., None], shares, 0)
    count = has_labels.sum(axis=0)
    sum_of = shares.sum(axis=0)
    total = (sum_of * difference.toward(sum_of)).sum(axis=-1)
    own = (shares * difference.toward(shares)).sum(axis=(0, -1))
    return per_pair(total - own, count), sum_of, count


def per_pair(total: Floats, count: Any) -> Floats:
    """Return a sum over ordered pairs of annotators for one of them; NaN where there is none."""
    with np.errstate(invalid="ignore", divide="ignore"):
        # Explicit, because rounding may leave a residue in a sum over no pairs.
        return np.where(count > 1, total / (count * (count - 1)), np.nan)


def linearised_error(statistics: ItemStatistics, model: Expected | None) -> float:
    """Return Gwet's standard error over items: a coefficient as a mean of one number per item.

    `model` is that of chance agreement; without it, the error is that of a mean over the items
    with a pair.
    """
    votes, totals, size = statistics.votes, statistics.weighted(), statistics.votes.size
    n, paired = float(totals.units[0]), float(totals.paired[0])
    if paired < 2:
        return math.nan
    observed = statistics.scalars[:, 2]
    if model is None:
        influence = np.where(size > 1, observed - totals.observed[0], 0)
        return float(np.sqrt((votes.times * influence**2).sum() / (paired * (paired - 1))))
    expected, toward = (moment[0] for moment in model(totals.shares, statistics.difference))
    if expected <= _NOTHING:
        return math.nan
    value = 1 - float(totals.observed[0] / expected)
    own = votes.counts @ toward / np.maximum(size, 1)
    influence = n / paired * ((size > 1) - observed / expected)
    influence += 2 * (1 - value) * (own / expected - 1)
    influence = np.where(size > 0, influence - value, 0)
    return float(np.sqrt((votes.times * influence**2).sum() / (n * (n - 1))))


class Measure(NamedTuple):
    """One measure of agreement.

    Most compare the observed difference with the `expected` one, or have a `formula` of their own;
    those with neither need the annotators: `conger` their label marginals, `cohen` and `scott` all
    pairs of them.
    """

    name: str
    summary: str
    aliases: tuple[str, ...] = ()
    expected: Expected | None = None
    formula: Formula | None = None
    kind: Literal["weighted", "plain", "alpha"] = "weighted"  # of difference between classes
    by_pairs: bool = False  # a mean over pairs of annotators


_TABLE = (
    Measure(
        "percent",
        "Mean share of the label pairs of an item that agree; not chance-corrected.",
        ("agreement", "percent-agreement", "observed"),
        formula=percent,
    ),
    Measure(
        "alpha",
        "Chance agreement from all labels; every label of an item with a pair counts once.",
        ("krippendorff", "krippendorff-alpha"),
        formula=alpha,
        kind="alpha",
    ),
    Measure(
        "fleiss",
        "Chance agreement from mean class proportions; items may have any number of labels.",
        aliases=("fleiss-kappa",),
        expected=fleiss_expected,
    ),
    Measure(
        "ac1",
        "Chance agreement only on items that are hard; robust where one class is very common.",
        aliases=("ac2", "gwet", "gwet-ac1", "gwet-ac2"),
        expected=gwet_expected,
    ),
    Measure(
        "brennan-prediger",
        "Chance agreement of uniform labels, weighted where classes differ by degrees.",
        aliases=("bp", "s-score", "bennett"),
        expected=even_expected,
    ),
    Measure(
        "randolph",
        "Chance agreement of uniform labels; classes are equal or not.",
        aliases=("free-marginal", "randolph-kappa"),
        expected=even_expected,
        kind="plain",
    ),
    Measure(
        "conger",
        "Chance agreement from the label marginals of annotators, averaged over their pairs.",
        ("conger-kappa",),
    ),
    Measure(
        "cohen",
        "Two annotators on common items; of more than two, the mean over co-annotating pairs.",
        ("kappa", "cohen-kappa", "light"),
        by_pairs=True,
    ),
    Measure(
        "scott",
        "As Cohen's, with chance agreement from the labels of both annotators together.",
        ("pi", "scott-pi"),
        by_pairs=True,
    ),
)

measures: Mapping[str, Measure] = MappingProxyType({measure.name: measure for measure in _TABLE})


def find_measure(name: str) -> Measure:
    """Return a measure by name or alias, ignoring case, `-`, `_` and spaces.

    Another package adds one as an entry point of the group `dissensus.measures`: its name, and
    `module:MEASURE`. It never hides a name, and is looked up where a name is not known.
    """
    by_name = {alias: measure for measure in _TABLE for alias in (measure.name, *measure.aliases)}
    with suppress(MethodError):
        return find_by_name("measure", name, by_name, measures)
    others = {
        entry: offered._replace(name=entry)
        for entry, offered in load_plug_ins(_PLUG_INS, by_name)
        if isinstance(offered, Measure)
    }
    return find_by_name("measure", name, by_name | others, (*measures, *others))
