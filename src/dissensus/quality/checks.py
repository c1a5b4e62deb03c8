"""Data quality: what is in the annotations and what is wrong with them, before aggregation.

A check examines counts, names, times and gold; it fits nothing, and its cost grows with the number
of annotations. A finding has a name, a severity, a sentence, examples and a remedy. `serious`
findings make results wrong whatever the method; the rest is worth knowing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..answers import Answers
from ..answers.annotations import Annotations, Scale
from ..answers.left_out import LeftOut
from ..answers.numbers import Numbers
from ..base.arrays import Integers
from ..base.names import as_names
from ..base.storage import as_plain
from ..base.tables import Table, Tabular, columns_of
from ..errors import DataError, Note
from ..pages.sections import SERIOUS, Finding
from .check_annotators import (
    check_crowd,
    check_groups,
    check_identifiability,
    check_items,
    check_streams,
)
from .check_labels import (
    check_classes,
    check_gold,
    check_kinds,
    check_names,
    check_quotes,
    check_repeats,
)
from .check_times import check_durations, check_times
from .check_values import check_answers, check_numbers
from .findings import CODES, is_free_text

if TYPE_CHECKING:
    from ..formats import Reading

__all__ = ["CODES", "Check", "Finding", "Spread", "check", "read_incomplete"]


class Spread(NamedTuple):
    """Minimum, median, mean and maximum of counts."""

    least: int
    median: float
    mean: float
    most: int


@dataclass(frozen=True, repr=False)
class Check(Tabular):
    """The size of the data, and findings.

    Attributes
    ----------
    kind
        `classes`, `numbers`, or the kind of other answers.
    classes
        The number of labels of every class; empty for numbers.
    scale, reason
        The scale of the labels, and why it is taken for that.
    findings
        The serious ones first.
    notes
        What was left out or assumed in reading.
    left_out
        Rows that were left out, by reason, and all items and annotators without a label.
    """

    kind: str
    n_labels: int
    n_items: int
    n_annotators: int
    n_gold: int
    labels_per_item: Spread
    labels_per_annotator: Spread
    classes: Mapping[str, int]
    scale: Scale
    reason: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    left_out: LeftOut = field(default_factory=LeftOut)

    def __repr__(self) -> str:
        other = len(self.findings) - len(self.serious)
        return (
            f"<Check of {self.n_labels} labels by {self.n_annotators} annotators on "
            f"{self.n_items} items: {len(self.serious)} serious findings, {other} worth knowing>"
        )

    def _table(self) -> Table:
        names = ("severity", "code", "count", "sentence", "remedy")
        rows = [{name: getattr(finding, name) for name in names} for finding in self.findings]
        return columns_of(rows) if rows else dict.fromkeys(names, as_names([]))

    @property
    def serious(self) -> tuple[Finding, ...]:
        """The findings that make results wrong whatever the method."""
        return tuple(finding for finding in self.findings if finding.severity == SERIOUS)

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON."""
        return as_plain(self)


def check(
    annotations: Annotations | Numbers | Reading | Any, *, gold: Any = None, scale: str = "auto"
) -> Check:
    """Check annotations before they are aggregated.

    Parameters
    ----------
    annotations
        Annotations, numbers, answers of another kind, a table, or a path that `read` takes.
    gold
        Known classes to check as well: `{item: class}`, a pandas Series, a table or a file.
    scale
        The scale of labels: nominal, ordinal, interval (or numeric) or ratio; by default that of
        the annotations, or what `read` detects.

    Examples
    --------
    >>> annotations = Annotations.from_columns("aabb", "xyxy", ["Cat", "cat", "dog", "dog"])
    >>> [finding.code for finding in check(annotations).serious]
    ['spellings', 'few-annotators', 'two-labels']
    """
    from ..formats import Reading, as_numbers, as_truth, examine

    notes: tuple[str, ...] = ()
    label_scale: Scale = "interval"
    reason = "the labels are numbers"
    truth = as_truth(gold) or {}
    findings: list[Finding] = []
    if isinstance(annotations, Answers):
        return _check_answers(annotations)
    data: Annotations | Numbers
    if isinstance(annotations, Numbers):
        data = annotations
    else:
        reading = annotations if isinstance(annotations, Reading) else None
        if reading is None:
            reading, gaps = read_incomplete(
                lambda missing: examine(annotations, missing=missing, scale=scale)
            )
            findings += gaps
        data, notes, reason = reading.annotations, reading.notes, reading.reason
        label_scale = data.scale
        truth = truth or dict(reading.gold)
        if reading.format == "votes":
            findings.append(
                Finding(
                    "anonymous",
                    "Only votes are counted, so annotators are unknown and cannot be judged.",
                    len(data),
                    remedy="majority and naive-soft; models of annotators learn nothing here",
                    severity=SERIOUS,
                )
            )
    if isinstance(data, Annotations) and data.numeric:
        data = as_numbers(data)
    counts = {}
    if isinstance(data, Annotations):
        size = np.bincount(data.label, minlength=data.n_classes)
        counts = dict(zip(data.classes.tolist(), size.tolist(), strict=True))
        findings += check_classes(data)
        findings += check_kinds(data)
        findings += check_identifiability(data, truth)
    for run in (check_quotes, check_names, check_repeats, check_crowd, check_items, check_groups):
        findings += run(data)
    if isinstance(data, Annotations) and not is_free_text(data):
        findings += check_streams(data)
    for column, check_column in (("duration", check_durations), ("time", check_times)):
        if len(data.columns.get(column, ())):
            findings += check_column(data, data.columns[column])
    if truth:
        findings += check_gold(data, truth)
    if isinstance(data, Numbers):
        findings += check_numbers(data)
    findings.sort(key=lambda finding: finding.severity != SERIOUS)
    return Check(
        kind="classes" if isinstance(data, Annotations) else "numbers",
        n_labels=len(data),
        n_items=data.n_items,
        n_annotators=data.n_annotators,
        n_gold=len(truth),
        labels_per_item=_spread(data.labels_per_item),
        labels_per_annotator=_spread(data.labels_per_annotator),
        classes=counts,
        scale=label_scale,
        reason=reason,
        findings=tuple(findings),
        notes=notes,
        left_out=data.left_out,
    )


def _check_answers(answers: Answers) -> Check:
    """Check answers of other kinds than classes and numbers."""
    findings = list(check_answers(answers))
    for run in (check_quotes, check_names, check_crowd, check_items, check_groups):
        findings += run(answers)
    findings.sort(key=lambda finding: finding.severity != SERIOUS)
    return Check(
        kind=answers.kind,
        n_labels=len(answers),
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
        n_gold=0,
        labels_per_item=_spread(answers.labels_per_item),
        labels_per_annotator=_spread(answers.labels_per_annotator),
        classes={},
        scale="nominal",
        reason=answers.summary,
        findings=tuple(findings),
        notes=answers.left_out.sentences,
        left_out=answers.left_out,
    )


def read_incomplete(read: Callable[[str], Reading]) -> tuple[Reading, list[Finding]]:
    """Return what `read` gives with `error`, or with `drop` and a finding about the gaps."""
    try:
        return read("error"), []
    except DataError as problem:
        message = problem.message
        drop = next((cure for cure in message.remedies if "missing" in cure.instead), None)
        if drop is None:
            raise
    sentence = f"{replace(message, remedies=()).text()}."
    remedy = Note("complete the rows", remedy=drop.words, **drop.instead)
    finding = Finding("incomplete", sentence, message.rows, remedy=remedy, severity=SERIOUS)
    return read("drop"), [finding]


def _spread(values: Integers) -> Spread:
    if len(values) == 0:
        return Spread(0, 0.0, 0.0, 0)
    return Spread(
        int(values.min()), float(np.median(values)), float(values.mean()), int(values.max())
    )
