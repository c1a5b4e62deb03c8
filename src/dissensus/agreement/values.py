"""The measures as functions of annotations."""

from __future__ import annotations

from ..annotations import Annotations
from ..answers.numbers import Numbers
from ._joint import Panel
from ._measures import find_measure
from .differences import Wish

__all__ = [
    "brennan_prediger",
    "conger_kappa",
    "fleiss_kappa",
    "gwet_ac",
    "krippendorff_alpha",
    "percent_agreement",
    "randolph_kappa",
]


def percent_agreement(annotations: Annotations, *, weights: Wish = "identity") -> float:
    """Return the mean share of agreeing pairs over the items with two labels or more.

    It lies between 0 and 1, and is NaN where no item has two labels.
    """
    return _value(annotations, "percent", weights)


def fleiss_kappa(annotations: Annotations, *, weights: Wish = "identity") -> float:
    """Return Fleiss' kappa, for any number of labels on an item."""
    return _value(annotations, "fleiss", weights)


def gwet_ac(annotations: Annotations, *, weights: Wish = "identity") -> float:
    """Return Gwet's AC1, or AC2 where weights are given."""
    return _value(annotations, "ac1", weights)


def brennan_prediger(annotations: Annotations, *, weights: Wish = "identity") -> float:
    """Return the coefficient of Brennan and Prediger; classes nobody used count too."""
    return _value(annotations, "brennan-prediger", weights)


def randolph_kappa(annotations: Annotations) -> float:
    """Return Randolph's free-marginal kappa; classes nobody used count too."""
    return _value(annotations, "randolph", "identity")


def conger_kappa(annotations: Annotations, *, weights: Wish = "identity") -> float:
    """Return Conger's kappa: chance is that of two different annotators."""
    return _value(annotations, "conger", weights)


def krippendorff_alpha(annotations: Annotations | Numbers, *, level: Wish | None = None) -> float:
    """Return alpha: 1 is full agreement, 0 what chance would give.

    The level is nominal (interval for numbers) unless told otherwise: ordinal, interval, ratio,
    circular, bipolar, or a matrix of differences. It is NaN where no item has two labels, and also
    where everybody uses one and the same class: nothing varies then, and agreement beyond chance
    is undefined.

    >>> numbers = Numbers.from_columns("aabb", "xyxy", [1.0, 1.5, 3.0, 3.5])
    >>> round(krippendorff_alpha(numbers), 4)
    0.9118
    """
    if isinstance(annotations, Numbers):
        from .estimating import as_classes

        annotations, level = as_classes(annotations), "interval" if level is None else level
    wish = "nominal" if level is None else level
    return float(Panel(annotations, [find_measure("alpha")], level=wish, by_item=True).values[0])


def _value(annotations: Annotations, name: str, weights: Wish) -> float:
    """Return one measure; no rows are put together, as nothing is drawn."""
    return float(Panel(annotations, [find_measure(name)], weights=weights, by_item=True).values[0])
