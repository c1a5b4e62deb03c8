"""The table of agreement measures, which the command line, the docs and the tests walk.

>>> find_measure("KrippendorffAlpha").name, find_measure("gwet").title
('alpha', "Gwet's AC")
>>> find_measure("kapa")
Traceback (most recent call last):
dissensus.errors.OptionError: no measure 'kapa'; did you mean kappa?
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import NamedTuple

from .._relation import Floats
from ..errors import OptionError
from . import coefficients as of
from .differences import Difference

Expected = Callable[[Floats, Difference], tuple[Floats, Floats]]


class Measure(NamedTuple):
    """One measure of agreement.

    `formula` takes sufficient statistics; measures without one need the annotators: `conger` their
    label marginals, `cohen` and `scott` all pairs of them.
    """

    name: str
    title: str
    summary: str
    aliases: tuple[str, ...] = ()
    formula: of.Formula | None = None
    expected: Expected | None = None  # for the standard error over items
    nominal: bool = False  # never weighted

    @property
    def by_pairs(self) -> bool:
        """Whether it is a mean over pairs of annotators."""
        return self.name in ("cohen", "scott")

    @property
    def linear(self) -> bool:
        """Whether its standard error has a formula."""
        return self.expected is not None or self.name == "percent"


_TABLE = (
    Measure(
        "percent",
        "percent",
        "Mean share of the label pairs of an item that agree; not chance-corrected.",
        ("agreement", "percent-agreement", "observed"),
        of.percent,
    ),
    Measure(
        "alpha",
        "Krippendorff's alpha",
        "Chance agreement from all labels; every label of an item with a pair counts once.",
        ("krippendorff", "krippendorff-alpha"),
        of.alpha,
    ),
    Measure(
        "fleiss",
        "Fleiss' kappa",
        "Chance agreement from mean class proportions; items may have any number of labels.",
        ("fleiss-kappa",),
        of.fleiss,
        of.fleiss_expected,
    ),
    Measure(
        "ac1",
        "Gwet's AC",
        "Chance agreement only on items that are hard; robust where one class is very common.",
        ("ac2", "gwet", "gwet-ac1", "gwet-ac2"),
        of.gwet,
        of.gwet_expected,
    ),
    Measure(
        "brennan-prediger",
        "Brennan–Prediger",
        "Chance agreement of uniform labels, weighted where classes differ by degrees.",
        ("bp", "s-score", "bennett"),
        of.brennan_prediger,
        of.even_expected,
    ),
    Measure(
        "randolph",
        "Randolph's kappa",
        "Chance agreement of uniform labels; classes are equal or not.",
        ("free-marginal", "randolph-kappa"),
        of.brennan_prediger,
        of.even_expected,
        True,
    ),
    Measure(
        "conger",
        "Conger's kappa",
        "Chance agreement from the label marginals of annotators, averaged over their pairs.",
        ("conger-kappa",),
    ),
    Measure(
        "cohen",
        "Cohen's kappa",
        "Two annotators on common items; of more than two, the mean over co-annotating pairs.",
        ("kappa", "cohen-kappa", "light"),
    ),
    Measure(
        "scott",
        "Scott's pi",
        "As Cohen's, with chance agreement from the labels of both annotators together.",
        ("pi", "scott-pi"),
    ),
)

measures: Mapping[str, Measure] = MappingProxyType({one.name: one for one in _TABLE})


def find_measure(name: str) -> Measure:
    """Return a measure by name or alias, ignoring case, `-`, `_` and spaces."""
    known = {_plain(other): one for one in _TABLE for other in (one.name, *one.aliases)}
    if _plain(name) in known:
        return known[_plain(name)]
    close = get_close_matches(_plain(name), known, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(measures)}"
    raise OptionError(f"no measure {name!r}; {hint}")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
