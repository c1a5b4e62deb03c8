"""Data quality: what is in the annotations and what is wrong with them, before aggregation.

A check examines counts, names, times and gold; it fits nothing, and its cost grows with the number
of annotations. A finding has a name, a severity, a sentence, examples and a remedy. `serious`
findings make results wrong whatever the method; the rest is worth knowing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..answers import KINDS
from ..answers.annotations import Annotations, Scale
from ..answers.left_out import LeftOut
from ..answers.numbers import Numbers
from ..base.arrays import Integers
from ..base.names import as_names
from ..base.storage import as_plain
from ..base.tables import Table, columns_of
from ..dispatch import by_kind
from ..errors import DataError, Note
from ..formats import Reading, as_truth, examine
from ..pages.sections import SERIOUS, Finding, Section
from ..pages.sections import Table as SmallTable
from ..result import Result
from .check_annotators import (
    check_confusion,
    check_crowd,
    check_groups,
    check_identifiability,
    check_items,
    check_streams,
    check_third_labels,
)
from .check_labels import (
    check_classes,
    check_gold,
    check_gold_classes,
    check_kinds,
    check_names,
    check_quotes,
    check_repeats,
)
from .check_times import check_speed
from .check_values import (
    check_copied,
    check_empty,
    check_label_names,
    check_looked,
    check_numbers,
    check_repeated,
    check_sides,
)
from .findings import CODES

__all__ = ["CODES", "Check", "Finding", "Spread", "check", "read_incomplete"]

AnyReading = TypeVar("AnyReading")

_MARKS = (check_looked, check_empty, check_repeated, check_label_names, check_copied)
_OF_KIND: Mapping[str, tuple[Callable[[Any], Iterator[Finding]], ...]] = {
    **dict.fromkeys(("spans", "boxes", "points"), _MARKS),
    "sets": (check_empty, check_repeated, check_label_names, check_copied),
    "rankings": (check_empty, check_repeated, check_sides),
}
_NOUNS = {"classes": "labels", "numbers": "numbers"}  # what answers of a kind are called
_MOST_CLASSES = 12
_LONGEST = 30  # characters of a class
_FEW, _MOST_NAMES = 3, 200  # names in a sentence, and on the terminal


class Spread(NamedTuple):
    """Minimum, median, mean and maximum of counts."""

    least: int
    median: float
    mean: float
    most: int


@dataclass(frozen=True, repr=False)
class Check(Result):
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
    path, format
        The file that was read, and its format; empty for answers in memory.
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
    left_out: LeftOut = field(default_factory=LeftOut)
    path: str = ""
    format: str = ""

    def __repr__(self) -> str:
        other = len(self.findings) - len(self.serious)
        return (
            f"<Check of {self.n_labels} labels by {self.n_annotators} annotators on "
            f"{self.n_items} items: {len(self.serious)} serious findings, {other} worth knowing>"
        )

    @property
    def tables(self) -> Mapping[str, Table]:
        """The findings."""
        names = ("severity", "code", "count", "sentence", "remedy")
        rows = [{name: getattr(finding, name) for name in names} for finding in self.findings]
        return {"findings": columns_of(rows) if rows else dict.fromkeys(names, as_names([]))}

    @property
    def serious(self) -> tuple[Finding, ...]:
        """The findings that make results wrong whatever the method."""
        return tuple(finding for finding in self.findings if finding.severity == SERIOUS)

    @property
    def sentences(self) -> tuple[str, ...]:
        """How much there is, the scale and the classes, and who has no label."""
        return (self._size(), *self._about_labels())

    def sections(self) -> tuple[Section, ...]:
        """Return the sizes, and what was found."""
        noun = "labels" if self.kind in _NOUNS else "answers"
        spreads = {
            f"{noun} per item": self.labels_per_item,
            f"{noun} per annotator": self.labels_per_annotator,
        }
        rows = [
            (name, str(spread.least), f"{spread.median:g}", f"{spread.mean:.1f}", str(spread.most))
            for name, spread in spreads.items()
        ]
        sizes = SmallTable("", ("", *Spread._fields), rows, framed=False)
        return (
            Section("data", "Data", text=[self._size()], panels=[[sizes]]),
            Section("findings", "Findings", text=self._about_labels(), findings=self.findings),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON."""
        of_file = {"path": self.path, "format": self.format} if self.path else {}
        return of_file | {
            name: value for name, value in as_plain(self).items() if name not in ("path", "format")
        }

    def _size(self) -> str:
        gold = f", gold for {self.n_gold}" if self.n_gold else ""
        file = f"{self.path} ({self.format}): " if self.path else ""
        return (
            f"{file}{self.n_labels} {_NOUNS.get(self.kind, 'answers')} by {self.n_annotators} "
            f"annotators on {self.n_items} items{gold}."
        )

    def _about_labels(self) -> list[str]:
        sentences = [f"scale: {self.scale} ({self.reason})"] if self.kind in _NOUNS else []
        if self.classes:
            sentences.append(self._most_common())
        without = {"items": self.left_out.items, "annotators": self.left_out.annotators}
        for role, names in without.items():
            if len(names) > _FEW:
                sentence = f"{role} without a label: {', '.join(names[:_MOST_NAMES])}"
                if len(names) > _MOST_NAMES:
                    sentence = Note(f"{sentence} …", remedy="all are in {}", json=True)
                sentences.append(sentence)
        return sentences

    def _most_common(self) -> str:
        """Return the most common classes and their share; ordered classes in order."""
        ordered = list(self.classes.items())
        if self.scale == "nominal":
            ordered.sort(key=lambda pair: -pair[1])
        total = max(self.n_labels, 1)
        most_common = ", ".join(
            f"{name if len(name) <= _LONGEST else name[: _LONGEST - 1] + '…'} {count / total:.1%}"
            for name, count in ordered[:_MOST_CLASSES]
        )
        continued = f", … ({len(ordered)} in all)" if len(ordered) > _MOST_CLASSES else ""
        return f"classes: {most_common}{continued}"


class ToCheck(NamedTuple):
    """Answers to check, and what reading them told."""

    answers: Any
    reason: str = "the labels are numbers"
    scale: Scale = "interval"
    gold: Mapping[str, str] = {}  # item → label
    notes: tuple[str, ...] = ()
    gaps: tuple[Finding, ...] = ()
    path: str = ""
    format: str = ""

    @property
    def kind(self) -> str:
        """The kind of the answers."""
        return str(self.answers.kind)


def to_check(source: Any, scale: str = "auto") -> ToCheck:
    """Return answers of any kind from what holds them; incomplete rows are a finding."""
    if isinstance(source, Numbers):
        return ToCheck(source)
    gaps: list[Finding] = []
    reading, path = source, ""
    if not isinstance(source, Reading):
        reading, gaps = read_incomplete(
            lambda missing: examine(source, missing=missing, scale=scale)
        )
        path = str(source) if isinstance(source, (str, Path)) else ""
    answers: Any = reading.answers
    of_file: Any = {"gaps": tuple(gaps), "path": path, "format": reading.format}
    if answers.kind in KINDS:
        notes = answers.left_out.sentences
        return ToCheck(answers, answers.summary, "nominal", notes=notes, **of_file)
    return ToCheck(
        answers, reading.reason, answers.scale, gold=reading.gold, notes=reading.notes, **of_file
    )


@by_kind(read=to_check)
def check(answers: Any, *, gold: Any = None, scale: str = "auto") -> Check:
    """Check answers before they are aggregated.

    Parameters
    ----------
    answers
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
    raise NotImplementedError


@check.for_kind("classes")
def check_on_classes(data: ToCheck, *, gold: Any = None) -> Check:
    """Check classes: names, annotators, times, and whether there is enough evidence."""
    labels: Annotations = data.answers
    truth = as_truth(gold) or dict(data.gold)
    findings = [
        *_anonymous(data),
        *check_classes(labels),
        *check_kinds(labels),
        *check_identifiability(labels, truth),
        *check_quotes(labels),
        *check_names(labels),
        *check_repeats(labels, labels.label, labels.classes),
        *check_crowd(labels),
        *check_confusion(labels),
        *check_items(labels),
        *check_third_labels(labels),
        *check_groups(labels),
        *check_streams(labels),
        *check_speed(labels),
        *check_gold(labels, truth),
        *check_gold_classes(labels, truth),
    ]
    size = np.bincount(labels.label, minlength=labels.n_classes)
    classes = dict(zip(labels.classes.tolist(), size.tolist(), strict=True))
    return _concluded(data, findings, n_gold=len(truth), classes=classes)


@check.for_kind("numbers")
def check_on_numbers(data: ToCheck, *, gold: Any = None) -> Check:
    """Check numbers: outliers, annotators, times and gold."""
    numbers: Numbers = data.answers
    truth = as_truth(gold) or dict(data.gold)
    findings = [
        *check_quotes(numbers),
        *check_names(numbers),
        *check_repeats(numbers, numbers.value),
        *check_crowd(numbers),
        *check_items(numbers),
        *check_groups(numbers),
        *check_speed(numbers),
        *check_gold(numbers, truth),
        *check_numbers(numbers),
    ]
    return _concluded(data, findings, n_gold=len(truth))


@check.for_kind(*KINDS)
def check_on_answers(data: ToCheck) -> Check:
    """Check answers of other kinds: empty, repeated and copied ones, and names of labels."""
    checks = (
        *_OF_KIND.get(data.kind, (check_empty, check_repeated, check_copied)),
        *(check_quotes, check_names, check_crowd, check_items, check_groups),
    )
    return _concluded(data, [finding for run in checks for finding in run(data.answers)])


def _anonymous(data: ToCheck) -> Iterator[Finding]:
    if data.format == "votes":
        yield Finding(
            "anonymous",
            "Only votes are counted, so annotators are unknown and cannot be judged.",
            len(data.answers),
            remedy="majority and naive-soft; models of annotators learn nothing here",
            severity=SERIOUS,
        )


def _concluded(
    data: ToCheck,
    findings: Iterable[Finding],
    n_gold: int = 0,
    classes: Mapping[str, int] | None = None,
) -> Check:
    """Return the size of the data with what was found, the serious findings first."""
    answers = data.answers
    return Check(
        kind=data.kind,
        n_labels=len(answers),
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
        n_gold=n_gold,
        labels_per_item=_spread(answers.labels_per_item),
        labels_per_annotator=_spread(answers.labels_per_annotator),
        classes=classes or {},
        scale=data.scale,
        reason=data.reason,
        findings=tuple(
            sorted((*data.gaps, *findings), key=lambda finding: finding.severity != SERIOUS)
        ),
        notes=data.notes,
        left_out=answers.left_out,
        path=data.path,
        format=data.format,
    )


def read_incomplete(read: Callable[[str], AnyReading]) -> tuple[AnyReading, list[Finding]]:
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
