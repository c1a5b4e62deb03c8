"""The numbers of a report: small, plain and without a look.

Pages and terminals show a `Summary`; whatever they say can be found here and tested as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr

from .._relation import Array, Integers
from ..agreement import in_words, krippendorff_alpha, percent_agreement
from ..annotations import Annotations
from ..errors import DataError
from ..metrics import Evaluation, evaluate
from ..result import Aggregation

__all__ = ["ClassShare", "DisputedItem", "RankedAnnotator", "Spread", "Summary", "summarise"]

SURE = 0.8  # confidence below this is worth a second look
FEW = 5  # annotators with fewer labels than this are not ranked


class Spread(NamedTuple):
    """The smallest, the mean and the largest of some numbers."""

    least: float
    mean: float
    most: float


class ClassShare(NamedTuple):
    """How common a class is: among the labels given, and among the labels inferred."""

    name: str
    annotations: float
    inferred: float


class RankedAnnotator(NamedTuple):
    """An annotator among the best or the worst."""

    name: str
    n_labels: int
    quality: float
    agreement: float


class DisputedItem(NamedTuple):
    """An item whose label is in doubt, and how many voted for what."""

    name: str
    label: str | None
    confidence: float
    entropy: float  # of the posterior, in nats
    votes: dict[str, int]  # class → labels, without the classes that nobody named


@dataclass(frozen=True)
class Summary:
    """What a reader wants to know first.

    Attributes
    ----------
    method, rounds, converged
        How the labels were inferred; 0 rounds for methods that need none.
    labels_per_item
        Over all items, also those nobody labelled.
    percent, alpha, alpha_word
        Agreement in pairs, Krippendorff's alpha, and the usual word for it.
    classes
        Every class in order; inferred shares are among the items that got a label.
    best, worst
        Annotators by quality, the best and the worst first. Nobody is in both.
    n_unranked
        Annotators who are not ranked: fewer than five labels, or no known quality. Where nobody
        has five labels, everybody with one is ranked.
    disputed
        Labelled items by the entropy of their posterior, the most disputed first.
    mean_confidence, unsure
        Mean belief in the labels, and the share of items with less than 0.8.
    evaluation
        The scores, where a truth was given.
    """

    method: str
    rounds: int
    converged: bool
    n_items: int
    n_annotators: int
    n_labels: int
    n_classes: int
    labels_per_item: Spread
    items_without_labels: int
    percent: float
    alpha: float
    alpha_word: str
    classes: tuple[ClassShare, ...]
    best: tuple[RankedAnnotator, ...]
    worst: tuple[RankedAnnotator, ...]
    n_unranked: int
    disputed: tuple[DisputedItem, ...]
    mean_confidence: float
    unsure: float
    evaluation: Evaluation | None

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        return {name: _plain(value) for name, value in vars(self).items()}


def summarise(
    annotations: Annotations,
    result: Aggregation,
    *,
    truth: Mapping[Any, Any] | None = None,
    most: int = 5,
) -> Summary:
    """Return what there is to tell about annotations and the labels inferred from them.

    Parameters
    ----------
    annotations
        The annotations.
    result
        What a method inferred from them.
    truth
        Known classes, `{item: class}`, to score the result with.
    most
        How many annotators and items to name in each list.

    Examples
    --------
    >>> from dissensus import aggregate
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", ["cat", "dog", "cat"] * 2)
    >>> told = summarise(annotations, aggregate(annotations, "majority"))
    >>> told.classes[0]
    ClassShare(name='cat', said=0.666..., inferred=1.0)
    >>> told.disputed[0].votes
    {'cat': 2, 'dog': 1}
    """
    _same_names(annotations, result)
    size = annotations.labels_per_item
    alpha = krippendorff_alpha(annotations)
    ranked = _ranked(result)
    half = (len(ranked) + 1) // 2
    return Summary(
        method=result.method,
        rounds=len(result.trace),
        converged=result.converged,
        n_items=annotations.n_items,
        n_annotators=annotations.n_annotators,
        n_labels=len(annotations),
        n_classes=annotations.n_classes,
        labels_per_item=_spread(size),
        items_without_labels=int((size == 0).sum()),
        percent=percent_agreement(annotations),
        alpha=alpha,
        alpha_word=in_words(alpha),
        classes=_shares(annotations, result),
        best=_annotators(result, ranked[:half][:most]),
        worst=_annotators(result, ranked[half:][::-1][:most]),
        n_unranked=annotations.n_annotators - len(ranked),
        disputed=_disputed(annotations, result, most),
        mean_confidence=_mean(result.confidence),
        unsure=_mean(result.confidence < SURE),
        evaluation=None if truth is None else evaluate(result, truth),
    )


def _same_names(annotations: Annotations, result: Aggregation) -> None:
    for what, here, there in (
        ("items", annotations.items, result.annotations.items),
        ("annotators", annotations.annotators, result.annotations.annotators),
        ("classes", annotations.classes, result.classes),
    ):
        if not np.array_equal(here, there):
            raise DataError(f"the result has other {what} than the annotations; give both of one")


def _shares(annotations: Annotations, result: Aggregation) -> tuple[ClassShare, ...]:
    given = np.bincount(annotations.label, minlength=annotations.n_classes)
    inferred = np.bincount(result.label[result.label >= 0], minlength=annotations.n_classes)
    with np.errstate(invalid="ignore"):
        shares = (given / given.sum()).tolist(), (inferred / inferred.sum()).tolist()
    return tuple(map(ClassShare, annotations.classes.tolist(), *shares))


def _ranked(result: Aggregation) -> Integers:
    """Return the annotators that can be ranked, the best first; among equals, by name."""
    given = result.annotations.labels_per_annotator
    known = ~np.isnan(result.quality) & (given > 0)
    enough = known & (given >= FEW)
    if not (given >= FEW).any():
        enough = known
    order = np.argsort(-result.quality, kind="stable")
    return order[enough[order]]


def _annotators(result: Aggregation, chosen: Integers) -> tuple[RankedAnnotator, ...]:
    columns = [values[chosen].tolist() for values in result.annotators.values()]
    return tuple(map(RankedAnnotator, *columns))


def _disputed(annotations: Annotations, result: Aggregation, most: int) -> tuple[DisputedItem, ...]:
    entropy = entr(result.posterior).sum(axis=1)
    doubt = np.where(
        annotations.labels_per_item > 0, entropy.round(12), 0
    )  # rounded, so ties are ties
    order = np.argsort(-doubt, kind="stable")[:most]
    chosen = order[doubt[order] > 0]
    return tuple(
        DisputedItem(
            annotations.items[item],
            result.labels[item],
            float(result.confidence[item]),
            float(entropy[item]),
            _votes(annotations, item),
        )
        for item in chosen.tolist()
    )


def _votes(annotations: Annotations, item: int) -> dict[str, int]:
    """Return how many labels of each class an item got."""
    counts = np.bincount(annotations.label[annotations.index[item] : annotations.index[item + 1]])
    return {annotations.classes[label]: int(counts[label]) for label in np.flatnonzero(counts)}


def _spread(values: Integers) -> Spread:
    if len(values) == 0:
        return Spread(math.nan, math.nan, math.nan)
    return Spread(int(values.min()), float(values.mean()), int(values.max()))


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else math.nan


def _plain(value: Any) -> Any:
    match value:
        case Evaluation():
            return value.as_dict()
        case float() if math.isnan(value):
            return None
        case tuple() if hasattr(value, "_asdict"):
            return {name: _plain(part) for name, part in value._asdict().items()}
        case tuple():
            return [_plain(part) for part in value]
    return value
