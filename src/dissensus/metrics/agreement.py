"""Agreement in several measures, with confidence intervals, and each measure as a function.

`agree` estimates them together, from the same bootstrap samples of items, and breaks them down;
`krippendorff_alpha` and its like return one number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from ..answers.annotations import SCALES, Annotations, Scale
from ..answers.numbers import Numbers
from ..base.arrays import Floats
from ..dispatch import by_kind
from ..errors import DataError, OptionError
from ..formats import as_answers
from .agreement_result import (
    Agreement,
    ClassAgreement,
    Estimate,
    Part,
    annotator_breakdown,
    in_words,
    item_breakdown,
    notes_on,
    one_vs_rest,
    split_options,
)
from .coefficients import Measure, find_measure
from .joint import IntervalKind, JointMeasures, Resampling, blocks, draws, interval_of
from .pairs import agreement_by_kind
from .statistics import WeightsLike

USUAL = ("percent", "alpha", "fleiss", "ac1")

By = Literal["item", "annotator", "class"]


@by_kind(read=as_answers, resampling=Resampling)
def agree(
    answers: Any,
    measures: Sequence[str] | str | None = None,
    *,
    scale: WeightsLike = "auto",
    weights: WeightsLike | None = None,
    by: By | None = None,
    multiple: bool = False,
    mark: str = "|",
    min_overlap: int = 1,
    resamples: int = 1000,
    confidence: float = 0.95,
    interval: IntervalKind = "percentile",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Agreement:
    """Return how much annotators agree.

    Parameters
    ----------
    answers
        Answers of any kind, a table, or a path that `read` takes. Classes and numbers have the
        measures below, other kinds those of their distances, see `distances`.
    measures
        Names of measures; by default percent, alpha, Fleiss' kappa and AC1, for numbers alpha.
    scale
        The scale of labels: nominal, ordinal, interval (or numeric), ratio, or a matrix of
        differences; by default that of the annotations, and interval for numbers.
    weights
        Weights of measures other than alpha, by name or as a matrix; by default those of the scale.
    by
        Also break down: every `class` against the rest, every `annotator` (with the measures
        without them), every `item`. Of other kinds, annotators and items by their mean distances.
    multiple
        Labels name several options with `mark` between them: each is a yes-or-no question.
    min_overlap
        Pairs of annotators with fewer common items do not count, for cohen and scott.
    resamples, confidence, interval
        Bootstrap samples of items, the confidence level, and percentile or bca.
    seed
        Random seed.
    progress
        Called with the resamples done and their number.

    Examples
    --------
    >>> annotations = Annotations.from_matrix([[1, 1, 1], [2, 2, 1], [2, 2, 2], [1, 2, 2]])
    >>> agreement = agree(annotations, ["percent", "alpha"], resamples=0)
    >>> [(one.measure, round(one.value, 3)) for one in agreement.estimates], agreement.word
    ([('percent', 0.667), ('alpha', 0.371)], 'fair')
    """
    raise NotImplementedError


@agree.for_kind("classes", "numbers")
def agree_on_labels(
    answers: Annotations | Numbers,
    measures: Sequence[str] | str | None,
    *,
    scale: WeightsLike,
    weights: WeightsLike | None,
    by: By | None,
    multiple: bool,
    mark: str,
    min_overlap: int,
    resampling: Resampling,
) -> Agreement:
    """Return how much annotators agree on classes, or on numbers as classes on a scale."""
    resampling.check()
    if by not in (None, "item", "annotator", "class"):
        raise OptionError(f"by = {by!r}, but it must be item, annotator or class")
    if by is not None and multiple:
        raise OptionError("several options are already broken down: leave out `by`")
    usual, as_labels = _OF_KIND[answers.kind]
    names = (measures,) if isinstance(measures, str) else tuple(measures or usual)
    coefficients = list({measure.name: measure for measure in map(find_measure, names)}.values())
    annotations = as_labels(answers)
    scale = check_scale(scale, annotations.scale)
    if not len(annotations):
        raise DataError("there are no labels, so nobody can agree")
    options = split_options(annotations, mark) if multiple else {}
    if multiple and not options:
        raise DataError("no label names an option")
    joints = [
        JointMeasures(binary, coefficients, min_overlap=min_overlap, by_item=True)
        for binary in options.values()
    ] or [
        JointMeasures(
            annotations, coefficients, scale=scale, weights=weights, min_overlap=min_overlap
        )
    ]
    estimates, by_relation = estimated(joints, resampling)
    parts: Sequence[Part] = [
        ClassAgreement(name, int((binary.label == 1).sum()), part)
        for (name, binary), part in zip(options.items(), by_relation, strict=False)
    ]
    if by is not None:
        parts = _breakdown(annotations, by, joints[0], resampling)
    value = {estimate.measure: estimate.value for estimate in estimates}
    corrected = [value[name] for name in ("alpha", *value) if name in value and name != "percent"]
    return Agreement(
        kind=answers.kind,
        estimates=estimates,
        by="option" if multiple else by,
        parts=tuple(parts),
        scale=scale if isinstance(scale, str) else "given differences",
        weights=weights if isinstance(weights, str) or weights is None else "given weights",
        n_items=annotations.n_items,
        n_annotators=annotations.n_annotators,
        n_labels=len(annotations),
        n_paired=int((annotations.labels_per_item > 1).sum()),
        resamples=resampling.resamples,
        confidence=resampling.confidence,
        interval=resampling.interval,
        word=in_words(corrected[0]) if corrected else "",
        kinds=() if multiple else agreement_by_kind(annotations, weights),
        notes=notes_on(
            annotations,
            estimates,
            scale=scale,
            weights=weights,
            joint=joints[0],
            min_overlap=min_overlap,
        ),
    )


def _breakdown(
    annotations: Annotations, by: By, joint: JointMeasures, settings: Resampling
) -> Sequence[Part]:
    """Return the agreement by item, by annotator, or on every class against the rest."""
    if by == "item":
        return item_breakdown(annotations, joint)
    if by == "annotator":
        return annotator_breakdown(annotations, joint)
    return [
        ClassAgreement(
            name,
            int((binary.label == 1).sum()),
            estimated([JointMeasures(binary, joint.measures)], settings)[0],
        )
        for name, binary in one_vs_rest(annotations).items()
    ]


def check_scale(scale: WeightsLike, detected: Scale) -> WeightsLike:
    """Return the scale of labels, with `auto` and `numeric` resolved."""
    if not isinstance(scale, str):
        return scale
    if scale == "auto":
        return detected
    if scale not in (*SCALES, "numeric", "circular", "bipolar"):
        raise OptionError(f"no scale {scale!r}; there are {', '.join(SCALES)}, circular, bipolar")
    return "interval" if scale == "numeric" else scale


class _OfKind(NamedTuple):
    """The measures that a kind usually has, and its answers as classes."""

    usual: tuple[str, ...]
    as_labels: Callable[[Any], Annotations]


_OF_KIND = {
    "classes": _OfKind(USUAL, lambda annotations: annotations),
    "numbers": _OfKind(USUAL, Numbers.as_classes),
}


def estimated(
    joints: Sequence[JointMeasures], settings: Resampling
) -> tuple[tuple[Estimate, ...], list[tuple[Estimate, ...]]]:
    """Return the means over several relations, and each of them; all resample the same items."""
    times, coefficients = joints[0].times, joints[0].measures
    value = np.stack([joint.values for joint in joints])  # (relation, measure)
    # A mean over pairs with few common items falls in every bootstrap sample, because items are
    # drawn twice; the quantiles may then exclude the value itself. So only one pair is resampled.
    pairs = all(not joint.by_pairs or len(joint.co_annotations.overlap) < 2 for joint in joints)
    pieces, n_done = [], 0
    for weights in draws(times, settings.resamples, settings.seed):
        pieces.append(np.stack([joint.weighted(weights, pairs=pairs) for joint in joints]))
        n_done += len(weights)
        settings.advance(n_done)
    drawn = np.concatenate(pieces, axis=2) if pieces else np.empty((*value.shape, 0))
    error = np.stack([joint.errors() for joint in joints])
    cheap = [not measure.by_pairs for measure in coefficients]
    left_out = np.full((*value.shape, 0), np.nan)  # (relation, measure, block)
    if settings.interval == "bca" or (np.isnan(error) & cheap).any():
        jackknife = blocks(times, settings.seed)
        left_out = np.stack([joint.weighted(jackknife, pairs=pairs) for joint in joints])
    by_relation = [
        _estimates(coefficients, *columns, settings)
        for columns in zip(value, drawn, error, left_out, strict=True)
    ]
    if len(joints) == 1:
        return by_relation[0], by_relation
    means = [_mean(values) for values in (value, drawn, left_out)]
    nothing = np.full(len(coefficients), np.nan)
    return _estimates(
        coefficients=coefficients,
        value=means[0],
        drawn=means[1],
        error=nothing,
        left_out=means[2],
        settings=settings,
    ), by_relation


def _estimates(
    coefficients: Sequence[Measure],
    value: Floats,  # (measure)
    drawn: Floats,  # (measure, draw)
    error: Floats,  # (measure)
    left_out: Floats,  # (measure, block)
    settings: Resampling,
) -> tuple[Estimate, ...]:
    out = []
    for position, measure in enumerate(coefficients):
        center, spread = float(value[position]), float(error[position])
        if math.isnan(spread) and not math.isnan(center):
            values = left_out[position][~np.isnan(left_out[position])]
            if len(values) > 1:  # the jackknife
                spread = float(np.sqrt((len(values) - 1) * values.var()))
        if math.isnan(spread) and (~np.isnan(drawn[position])).sum() > 1:
            spread = float(np.nanstd(drawn[position], ddof=1))
        if measure.by_pairs and drawn.shape[1] and np.isnan(drawn[position]).all():
            reach = spread * float(ndtri(0.5 + settings.confidence / 2))
            low, high = center - reach, min(center + reach, 1.0)
            out.append(
                Estimate(
                    measure=measure.name, value=center, low=low, high=high, error=spread, dropped=0
                )
            )
            continue
        corrected = left_out[position] if settings.interval == "bca" else None
        low, high, dropped = interval_of(center, drawn[position], settings.confidence, corrected)
        out.append(
            Estimate(
                measure=measure.name,
                value=center,
                low=low,
                high=high,
                error=spread,
                dropped=dropped,
            )
        )
    return tuple(out)


def _mean(values: Floats) -> Floats:
    """Return the mean over the relations that have a value; NaN where none has."""
    has_value = ~np.isnan(values)
    total, count = np.where(has_value, values, 0).sum(axis=0), has_value.sum(axis=0)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


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
    annotations = _OF_KIND[annotations.kind].as_labels(annotations)
    scale = check_scale(scale, annotations.scale)
    alpha = JointMeasures(annotations, [find_measure("alpha")], scale=scale, by_item=True)
    return float(alpha.values[0])


def _value(annotations: Annotations, name: str, weights: WeightsLike) -> float:
    """Return one measure; rows are not merged, as nothing is resampled."""
    return float(
        JointMeasures(annotations, [find_measure(name)], weights=weights, by_item=True).values[0]
    )
