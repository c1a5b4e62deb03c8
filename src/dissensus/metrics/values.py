"""The measures as functions of annotations."""

from __future__ import annotations

from ..answers.annotations import Annotations
from ..answers.numbers import Numbers
from .coefficients import find_measure
from .statistics import WeightsLike
from .agreement import as_classes, check_scale
from .joint import JointMeasures


def percent_agreement(annotations: Annotations, *, weights: WeightsLike = "identity") -> float:
    """Return the mean share of agreeing pairs over the items with two labels or more.

    It lies between 0 and 1, and is NaN where no item has two labels.
    """
    return _value(annotations, "percent", weights)


def fleiss_kappa(annotations: Annotations, *, weights: WeightsLike = "identity") -> float:
    """Return Fleiss' kappa, for any number of labels on an item."""
    return _value(annotations, "fleiss", weights)


def gwet_ac(annotations: Annotations, *, weights: WeightsLike = "identity") -> float:
    """Return Gwet's AC1, or AC2 where weights are given."""
    return _value(annotations, "ac1", weights)


def brennan_prediger(annotations: Annotations, *, weights: WeightsLike = "identity") -> float:
    """Return the coefficient of Brennan and Prediger; classes nobody used count too."""
    return _value(annotations, "brennan-prediger", weights)


def randolph_kappa(annotations: Annotations) -> float:
    """Return Randolph's free-marginal kappa; classes nobody used count too."""
    return _value(annotations, "randolph", "identity")


def conger_kappa(annotations: Annotations, *, weights: WeightsLike = "identity") -> float:
    """Return Conger's kappa: chance agreement is that of two different annotators."""
    return _value(annotations, "conger", weights)


def krippendorff_alpha(annotations: Annotations | Numbers, *, scale: WeightsLike = "auto") -> float:
    """Return alpha: 1 is full agreement, 0 agreement by chance.

    The scale is that of the annotations (interval for numbers) by default; or nominal, ordinal,
    interval, ratio, circular, bipolar, or a matrix of differences. Alpha is NaN where no item has
    two labels, and where all labels are one and the same class: without variation, agreement
    beyond chance is undefined.

    >>> numbers = Numbers.from_columns("aabb", "xyxy", [1.0, 1.5, 3.0, 3.5])
    >>> round(krippendorff_alpha(numbers), 4)
    0.9118
    """
    if isinstance(annotations, Numbers):
        annotations = as_classes(annotations)
    scale = check_scale(scale, annotations.scale)
    alpha = JointMeasures(annotations, [find_measure("alpha")], scale=scale, by_item=True)
    return float(alpha.values[0])


def _value(annotations: Annotations, name: str, weights: WeightsLike) -> float:
    """Return one measure; rows are not merged, as nothing is resampled."""
    return float(
        JointMeasures(annotations, [find_measure(name)], weights=weights, by_item=True).values[0]
    )
