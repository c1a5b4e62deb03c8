"""The numbers behind a summary: small, plain and without layout.

Pages and terminals show a `Summary`; everything on them can be found here and tested as numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr

from ..aggregation.aggregation import ClassAggregation
from ..answers.annotations import Annotations
from ..base.arrays import Integers
from ..base.storage import as_plain
from ..errors import DataError
from ..formats import as_answers, as_truth
from ..metrics import Evaluation, evaluate, in_words, krippendorff_alpha, percent_agreement
from ..pages.sections import CONFIDENT

_RANKED = ("annotator", "n_labels", "quality", "agreement")
FEW = 5  # annotators with fewer labels than this are not ranked


class LabelCounts(NamedTuple):
    """The smallest, the mean and the largest number of labels of an item."""

    least: float
    mean: float
    most: float


class ClassShare(NamedTuple):
    """How common a class is among the labels given, and among the labels inferred."""

    name: str
    given: float
    inferred: float


class RankedAnnotator(NamedTuple):
    """An annotator among the best or the worst."""

    name: str
    n_labels: int
    quality: float
    agreement: float


class DisputedItem(NamedTuple):
    """An item whose label is in doubt, with its votes."""

    name: str
    label: str | None
    confidence: float
    entropy: float  # of the posterior, in nats
    votes: dict[str, int]  # class → labels, without the classes that nobody gave


@dataclass(frozen=True)
class Summary:
    """Key figures of annotations and of the labels inferred from them.

    Attributes
    ----------
    method, rounds, converged
        How the labels were inferred; 0 rounds for methods that do not iterate.
    labels_per_item
        Over all items, also those without labels.
    percent, alpha, alpha_word
        Pairwise agreement, Krippendorff's alpha, and the usual word for it.
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
        Mean confidence in the labels, and the share of items with less than 0.8; of the items that
        can be judged, and NaN without any.
    cannot_be_told
        Why it cannot be told how many labels are right, and what would show it; or empty.
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
    labels_per_item: LabelCounts
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
    cannot_be_told: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        summary: dict[str, Any] = as_plain(self)
        if not self.cannot_be_told:
            del summary["cannot_be_told"]
        return summary


def summarise(
    annotations: Any, result: ClassAggregation, *, truth: Any = None, most: int = 5
) -> Summary:
    """Return the key figures of annotations and of the labels inferred from them.

    Parameters
    ----------
    annotations
        Annotations, or what `read` takes.
    result
        What a method inferred from them.
    truth
        Known classes, `{item: class}` or a table, to score the result with.
    most
        How many annotators and items to name in each list.

    Examples
    --------
    >>> from dissensus import aggregate
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", ["cat", "dog", "cat"] * 2)
    >>> summary = summarise(annotations, aggregate(annotations, "majority"))
    >>> summary.classes[0]
    ClassShare(name='cat', given=0.666..., inferred=1.0)
    >>> summary.disputed[0].votes
    {'cat': 2, 'dog': 1}
    """
    annotations = as_answers(annotations, kind="classes")
    for name, expected, actual in (
        ("items", annotations.items, result.answers.items),
        ("annotators", annotations.annotators, result.answers.annotators),
        ("classes", annotations.classes, result.classes),
    ):
        if not np.array_equal(expected, actual):
            raise DataError(f"the result has other {name} than the annotations; give both of one")
    size, confidence = annotations.labels_per_item, result.confidence
    if len(size) == 0:
        size = confidence = np.array([math.nan])
    identifiable = confidence[~np.isnan(confidence)]
    counts = [
        np.bincount(label, minlength=annotations.n_classes)
        for label in (annotations.label, result.label[result.label >= 0])
    ]
    with np.errstate(invalid="ignore"):
        shares = [(count / count.sum()).tolist() for count in counts]
    alpha = krippendorff_alpha(annotations)
    ranked = _ranked(result)
    half = (len(ranked) + 1) // 2
    people = list(
        map(RankedAnnotator, *(result.annotators[name][ranked].tolist() for name in _RANKED))
    )
    return Summary(
        method=result.method,
        rounds=len(result.trace),
        converged=result.converged,
        n_items=annotations.n_items,
        n_annotators=annotations.n_annotators,
        n_labels=len(annotations),
        n_classes=annotations.n_classes,
        labels_per_item=LabelCounts(size.min().item(), size.mean().item(), size.max().item()),
        items_without_labels=int((size == 0).sum()),
        percent=percent_agreement(annotations),
        alpha=alpha,
        alpha_word=in_words(alpha),
        classes=tuple(map(ClassShare, annotations.classes.tolist(), *shares)),
        best=tuple(people[:half][:most]),
        worst=tuple(people[half:][::-1][:most]),
        n_unranked=annotations.n_annotators - len(ranked),
        disputed=_disputed(annotations, result, most),
        mean_confidence=float(identifiable.mean()) if len(identifiable) else math.nan,
        unsure=float((identifiable < CONFIDENT).mean()) if len(identifiable) else math.nan,
        evaluation=None if truth is None else evaluate(result, as_truth(truth)),
        cannot_be_told=" ".join(result.unidentifiable or ()),
    )


def _ranked(result: ClassAggregation) -> Integers:
    """Return the annotators that can be ranked, the best first; among equals, by name."""
    n_labels = result.answers.labels_per_annotator
    enough = ~np.isnan(result.annotators["quality"]) & (n_labels > 0)
    if (n_labels >= FEW).any():
        enough &= n_labels >= FEW
    order = np.argsort(-result.quality, kind="stable")
    return order[enough[order]]


def _disputed(
    annotations: Annotations, result: ClassAggregation, most: int
) -> tuple[DisputedItem, ...]:
    entropy = entr(result.probabilities).sum(axis=1)
    # Rounded, so that ties are ties.
    labelled = (annotations.labels_per_item > 0) & result.is_identifiable
    doubt = np.where(labelled, entropy.round(12), 0)
    items = []
    for item in np.argsort(-doubt, kind="stable")[:most].tolist():
        if doubt[item] > 0:
            span = slice(annotations.index[item], annotations.index[item + 1])
            names, counts = np.unique(annotations.label[span], return_counts=True)
            votes = dict(zip(annotations.classes[names].tolist(), counts.tolist(), strict=True))
            confidence = float(result.confidence[item])
            name, label = annotations.items[item], result.labels[item]
            items.append(
                DisputedItem(
                    name=name,
                    label=label,
                    confidence=confidence,
                    entropy=float(entropy[item]),
                    votes=votes,
                )
            )
    return tuple(items)
