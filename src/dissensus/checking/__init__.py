"""What is in the annotations and what is wrong with them, before anything is aggregated.

A check looks at counts, names, times and gold; it fits nothing, and its cost grows with the
number of annotations. What it finds has a name, a severity, a sentence, examples and a remedy.
`serious` is what makes results wrong whatever the method; the rest is worth knowing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from .._names import as_names
from .._relation import Integers
from ..annotations import Annotations
from ..answers.numbers import Numbers
from ._finding import CODES, SERIOUS, CheckContext, Finding
from .evidence import check_crowd, check_groups, check_items
from .known import check_gold
from .labels import check_classes, check_repeats, check_spellings
from .numbers import check_numbers
from .streams import check_copies, check_one_class
from .times import check_durations, check_times

if TYPE_CHECKING:
    from ..readers import Reading

__all__ = ["CODES", "Check", "Finding", "Spread", "check"]

_CHECKS = (
    check_classes,
    check_spellings,
    check_repeats,
    check_crowd,
    check_items,
    check_groups,
    check_one_class,
    check_copies,
    check_durations,
    check_times,
    check_gold,
    check_numbers,
)


class Spread(NamedTuple):
    """Some counts: the smallest, the middle one, the mean and the largest."""

    least: int
    median: float
    mean: float
    most: int


@dataclass(frozen=True)
class Check:
    """What is in annotations, and what was found wrong with them.

    Attributes
    ----------
    kind
        `classes` or `numbers`.
    classes
        How many labels every class has; of numbers nothing.
    findings
        The serious ones first.
    notes
        What reading left out or assumed.
    """

    kind: Literal["classes", "numbers"]
    n_labels: int
    n_items: int
    n_annotators: int
    n_gold: int
    labels_per_item: Spread
    labels_per_annotator: Spread
    classes: Mapping[str, int]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def serious(self) -> tuple[Finding, ...]:
        """The findings that make results wrong whatever the method."""
        return tuple(one for one in self.findings if one.severity == SERIOUS)

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON."""
        return {
            "kind": self.kind,
            "n_labels": self.n_labels,
            "n_items": self.n_items,
            "n_annotators": self.n_annotators,
            "n_gold": self.n_gold,
            "labels_per_item": self.labels_per_item._asdict(),
            "labels_per_annotator": self.labels_per_annotator._asdict(),
            "classes": dict(self.classes),
            "findings": [asdict(one) | {"examples": list(one.examples)} for one in self.findings],
            "notes": list(self.notes),
        }


def check(
    what: Annotations | Numbers | Reading | Any,
    *,
    gold: Mapping[Any, Any] | None = None,
    labels: Literal["auto", "nominal", "numeric"] = "auto",
) -> Check:
    """Look for what is wrong with annotations before they are aggregated.

    Parameters
    ----------
    what
        Annotations, numbers, or what `read` takes.
    gold
        Known classes, `{item: class}`, to look at as well.
    labels
        Whether labels are classes or numbers, where their names leave it open.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aabb", "xyxy", ["Cat", "cat", "dog", "dog"])
    >>> [finding.code for finding in check(annotations).serious]
    ['spellings', 'few-annotators', 'two-labels']
    """
    from ..readers import Reading, examine

    notes: tuple[str, ...] = ()
    known = {} if gold is None else dict(gold)
    findings: list[Finding] = []
    annotations: Annotations | Numbers
    if isinstance(what, (Annotations, Numbers)):
        annotations = what
    else:
        found = what if isinstance(what, Reading) else examine(what)
        annotations, notes = found.annotations, found.notes
        known = known or dict(found.gold)
        if found.kind == "numeric" and labels == "auto":
            labels = "numeric"
        if found.format == "votes":
            findings.append(_anonymous(annotations))
    if isinstance(annotations, Annotations):
        annotations = _as_numbers(annotations, labels)
    names = as_names(known.keys()).tolist()
    context = CheckContext(
        annotations, dict(zip(names, as_names(known.values()).tolist(), strict=True))
    )
    findings += [one for run in _CHECKS for one in run(context)]
    findings.sort(key=lambda one: one.severity != SERIOUS)
    counts = {}
    if isinstance(annotations, Annotations):
        size = np.bincount(annotations.label, minlength=annotations.n_classes)
        counts = dict(zip(annotations.classes.tolist(), size.tolist(), strict=True))
    return Check(
        "classes" if isinstance(annotations, Annotations) else "numbers",
        len(annotations),
        annotations.n_items,
        annotations.n_annotators,
        len(known),
        _spread(annotations.labels_per_item),
        _spread(annotations.labels_per_annotator),
        counts,
        tuple(findings),
        notes,
    )


def _anonymous(annotations: Annotations) -> Finding:
    return Finding(
        "anonymous",
        SERIOUS,
        "Only votes were counted, so annotators are no persons and cannot be judged.",
        len(annotations),
        remedy="majority and naive-soft; models of annotators learn nothing here",
    )


def _as_numbers(annotations: Annotations, labels: str) -> Annotations | Numbers:
    from ..readers import as_numbers, kind_of_labels

    if labels == "auto":
        labels = kind_of_labels(annotations.classes.tolist()).kind
    return as_numbers(annotations) if labels == "numeric" else annotations


def _spread(values: Integers) -> Spread:
    if len(values) == 0:
        return Spread(0, 0.0, 0.0, 0)
    return Spread(
        int(values.min()), float(np.median(values)), float(values.mean()), int(values.max())
    )
