"""Decisions: what the entries of a journal amount to.

The last decision of a reviewer on an item counts, unless it was taken back. Where all reviewers of
an item chose the same class, it is gold; where they differ, the arbiter's choice is. An item that
somebody calls split or unclear is never gold, unless the arbiter chose a class.

Decisions hold classes of the file; the names of the changes that are kept are applied when they
leave. A decision does not count while none of the labels that it saw is in the file any more, until
somebody confirms it, nor one for a class that was merged of several which are apart again.

Changes are what if: annotators left out, classes merged or renamed, another method, with the effect
on labels, certainty and agreement.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from ..aggregation import aggregate
from ..aggregation.aggregation import ClassAggregation
from ..answers.annotations import Annotations
from ..base.arrays import Integers
from ..errors import DataError, MethodError, OptionError
from ..metrics import krippendorff_alpha
from ..registry import aggregators
from .journal import VERDICTS, Entry

OPEN, DECIDED, SPLIT, UNCLEAR, DISPUTED = range(5)
STATUSES = ("open", "decided", "split", "unclear", "reviewers differ")
_STATUS_OF = {"label": DECIDED, "split": SPLIT, "unclear": UNCLEAR}
_DIGITS = 8  # of the hash of a label in a fingerprint
_MOST = 64  # hashes in a fingerprint


@dataclass(frozen=True)
class Changes:
    """How the annotations that are fitted differ from those in the file.

    Attributes
    ----------
    left_out
        Annotators without a vote.
    renamed
        Classes under another name; two under the same name are merged.
    method
        The method; empty for that of the command.
    """

    left_out: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    method: str = ""

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Changes:
        """Return the changes that `to_dict` made plain."""
        renamed = dict(stored.get("renamed", {}))
        return cls(tuple(stored.get("left_out", ())), renamed, str(stored.get("method", "")))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    def __bool__(self) -> bool:
        return bool(self.left_out or self.renamed or self.method)

    def name(self, label: str) -> str:
        """Return the present name of a class."""
        return self.renamed.get(label, label)

    def possible(self, annotations: Annotations) -> tuple[Changes, tuple[str, ...]]:
        """Return the changes that these annotations allow, and a sentence about each other one.

        >>> annotations = Annotations.from_columns("aaa", "xyz", ["cat", "cats", "dog"])
        >>> Changes(("z", "old"), {"cats": "cat"}).possible(annotations)[1]
        ("Annotator 'old' is left out, but has no labels in the file any more.",)
        """
        people, classes = set(annotations.annotators.tolist()), set(annotations.classes.tolist())
        skipped = [
            f"Annotator {name!r} is left out, but has no labels in the file any more."
            for name in self.left_out
            if name not in people
        ]
        skipped += [
            f"Class {old!r} counts as {new!r}, but is not in the file any more."
            for old, new in self.renamed.items()
            if old not in classes
        ]
        left_out = tuple(name for name in self.left_out if name in people)
        if people.issubset(left_out):
            skipped.append("Every annotator in the file is left out, which leaves nobody.")
            left_out = ()
        method = self.method
        try:
            aggregators.create(method or "majority")
        except MethodError as problem:
            skipped.append(f"Labels are inferred by {method}, but {problem}.")
            method = ""
        renamed = {old: new for old, new in self.renamed.items() if old in classes}
        return Changes(left_out, renamed, method), tuple(skipped)

    def originals(self, classes: Iterable[str]) -> dict[str, str]:
        """Return the class of the file by its present name; of merged ones the same, or the first.

        >>> Changes(renamed={"cat": "dog", "dog": "fox"}).originals(["cat", "dog"])
        {'dog': 'cat', 'fox': 'dog'}
        """
        originals: dict[str, str] = {}
        for label in classes:
            if self.name(label) == label:
                originals[label] = label
            else:
                originals.setdefault(self.name(label), label)
        return originals

    def merged(self, label: str) -> list[str]:
        """Return the classes of the file that one of `originals` stands for."""
        name = self.renamed.get(label)
        if name is None:
            return [label]
        return [old for old, new in self.renamed.items() if new == name]

    def apply(self, annotations: Annotations) -> Annotations:
        """Return the annotations with these changes.

        >>> annotations = Annotations.from_columns("aaa", "xyz", ["cat", "cats", "dog"])
        >>> Changes(("z",), {"cats": "cat"}).apply(annotations)
        <Annotations: 2 labels by 2 annotators on 1 items; classes cat, dog>
        """
        if self.left_out:
            people = annotations.annotators.tolist()
            missing = set(self.left_out).difference(people)
            if missing:
                raise DataError(f"no annotator {sorted(missing)[0]!r}")
            is_voting = ~np.isin(people, list(self.left_out))
            if not is_voting.any():
                raise OptionError("all annotators are left out; keep at least one")
            annotations = annotations.subset(annotators=is_voting)
        if not self.renamed:
            return annotations
        missing = set(self.renamed).difference(annotations.classes.tolist())
        if missing:
            raise DataError(f"no class {sorted(missing)[0]!r}")
        new = [self.name(label) for label in annotations.classes.tolist()]
        names = list(dict.fromkeys(new))
        table = np.array([names.index(name) for name in new])
        return annotations.with_codes(
            label=table[annotations.label], classes=names, **annotations.columns
        )

    @property
    def sentences(self) -> list[str]:
        """What is changed, a sentence each."""
        out = []
        if self.left_out:
            out.append(f"Left out: {', '.join(self.left_out)}.")
        out += [f"Class {old} counts as {new}." for old, new in self.renamed.items()]
        if self.method:
            out.append(f"Labels are inferred by {self.method}.")
        return out


class Effect(NamedTuple):
    """What changes do to labels, certainty and agreement."""

    changed: Integers  # items by code, whose label is another
    before: list[str]  # their labels
    after: list[str]
    certainty: tuple[float, float]  # mean, before and after
    alpha: tuple[float, float]
    n_items: int


def effect(
    annotations: Annotations,
    present: ClassAggregation,
    changes: Changes,
    *,
    method: str,
    gold: Mapping[str, str] | None,
    seed: int,
    old_changes: Changes = Changes(),
) -> Effect:
    """Return the effect of changes to annotations, compared with the present result.

    The classes of `annotations` and `gold` are those of the file; the present result has the names
    of `old_changes`.
    """
    aggregators.create(method)  # fails early
    changed = changes.apply(annotations)
    classes = set(changed.classes.tolist())
    known_labels = {item: changes.name(label) for item, label in (gold or {}).items()}
    known_labels = {item: label for item, label in known_labels.items() if label in classes}
    result = aggregate(changed, method, gold=known_labels or None, seed=seed)
    old_labels = ["undecided" if label is None else label for label in present.labels.tolist()]
    new_labels = ["undecided" if label is None else label for label in result.labels.tolist()]
    new_names: dict[str, set[str]] = {"undecided": {"undecided"}}
    for label in annotations.classes.tolist():
        new_names.setdefault(old_changes.name(label), set()).add(changes.name(label))

    def differ(old: str, new: str) -> bool:
        names = new_names.get(old, set())
        return new not in names or (len(names) > 1 and old != new)  # merged classes are apart again

    differs = [
        k for k, (a, b) in enumerate(zip(old_labels, new_labels, strict=True)) if differ(a, b)
    ]
    return Effect(
        changed=np.array(differs, dtype=np.int64),
        before=[old_labels[k] for k in differs],
        after=[new_labels[k] for k in differs],
        certainty=(mean_certainty(present), mean_certainty(result)),
        alpha=(krippendorff_alpha(present.answers), krippendorff_alpha(changed)),
        n_items=annotations.n_items,
    )


def mean_certainty(result: ClassAggregation) -> float:
    """Return the mean confidence in labels that can be judged, NaN without any."""
    confidence = result.confidence[result.is_identifiable]
    return float(confidence.mean()) if len(confidence) else math.nan


class Decisions:
    """Decisions by item and reviewer; entries are added in the order of the journal.

    With the annotations of the file, decisions on labels that are not there any more do not count.
    Others may read while one adds: what belongs to an item is replaced, never changed.

    >>> decisions = Decisions([Entry(1, "", "ann", "label", "a", "cat")])
    >>> decisions.gold()
    {'a': 'cat'}
    >>> decisions.add(Entry(2, "", "bob", "split", "a"))
    >>> decisions.gold(), STATUSES[decisions.status("a")]
    ({}, 'reviewers differ')
    >>> decisions.add(Entry(3, "", "bob", "undo", value="2"))
    >>> decisions.gold()
    {'a': 'cat'}
    """

    def __init__(
        self, entries: Iterable[Entry] = (), annotations: Annotations | None = None
    ) -> None:
        self.number = 0  # of the last entry
        self.arbiter = ""
        self.annotations = annotations  # as in the file
        self._outdated: set[int] = set()  # numbers of decisions on labels that are gone
        self._apart: set[int] = set()  # for classes that were merged of several, apart again
        self._all_changes = {0: Changes()}  # by number, also those taken back
        self._entries: dict[int, Entry] = {}  # that can be taken back
        self._by_item: dict[str, dict[str, tuple[Entry, ...]]] = {}
        self._changes: tuple[Entry, ...] = ()
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add an entry."""
        self.number = max(self.number, entry.number)
        if entry.kind == "arbiter":
            self.arbiter = entry.value
        elif entry.kind == "undo":
            self._take_back(self._entries.pop(int(entry.value), None))
        elif entry.kind == "confirm":
            labels: Mapping[str, str] = json.loads(entry.value)
            for number, labels_then in labels.items():
                decision = self._entries.get(int(number))
                if decision is not None and not self._is_gone(decision.item, labels_then):
                    self._outdated.discard(decision.number)
        else:
            if entry.kind == "change":
                self._all_changes[entry.number] = Changes.from_dict(json.loads(entry.value))
            self._entries[entry.number] = entry
            if entry.kind == "change":
                self._keep((*self._changes, entry))
            else:
                if self._is_gone(entry.item, entry.labels):
                    self._outdated.add(entry.number)
                if self._is_apart(entry):
                    self._apart.add(entry.number)
                of_item = self._by_item.get(entry.item, {})
                own_entries = (*of_item.get(entry.reviewer, ()), entry)
                self._by_item[entry.item] = {**of_item, entry.reviewer: own_entries}

    def _keep(self, changes: tuple[Entry, ...]) -> None:
        self._changes = changes
        self._apart = {entry.number for entry in self._entries.values() if self._is_apart(entry)}

    def _take_back(self, entry: Entry | None) -> None:
        if entry is None:
            return
        if entry.kind == "change":
            self._keep(tuple(change for change in self._changes if change is not entry))
            return
        of_item = self._by_item[entry.item]
        own_entries = tuple(
            decision for decision in of_item[entry.reviewer] if decision is not entry
        )
        remaining = {**of_item, entry.reviewer: own_entries}
        remaining = {name: entries for name, entries in remaining.items() if entries}
        if remaining:
            self._by_item[entry.item] = remaining
        else:
            del self._by_item[entry.item]

    def _is_gone(self, item: str, labels: str | None) -> bool:
        """Return whether an item in the file has none of the labels of a fingerprint."""
        code = self._codes.get(item) if labels else None
        if code is None or labels is None or self.annotations is None:
            return False
        labels_seen = {labels[k : k + _DIGITS] for k in range(0, len(labels), _DIGITS)}
        return labels_seen.isdisjoint(_hashes(self.annotations, code))

    @cached_property
    def _codes(self) -> dict[str, int]:
        names = [] if self.annotations is None else self.annotations.items.tolist()
        return {name: code for code, name in enumerate(names)}

    def of(self, item: str) -> dict[str, Entry]:
        """Return the decision of every reviewer of an item, if it counts."""
        last = {name: entries[-1] for name, entries in self._by_item.get(item, {}).items()}
        if not self._outdated and not self._apart:  # all count
            return last
        return {name: entry for name, entry in last.items() if self._counts(entry)}

    def _counts(self, entry: Entry) -> bool:
        return entry.number not in self._outdated and entry.number not in self._apart

    def _is_apart(self, entry: Entry) -> bool:
        """Return whether the class of a decision was merged of several that are apart again."""
        if not entry.changes or entry.kind != "label":
            return False
        merged = self.changes_of(entry.changes).merged(entry.value)
        return len({self.changes.name(label) for label in merged}) > 1

    def __contains__(self, item: str) -> bool:
        return bool(self.of(item))

    def last(self, reviewer: str, kinds: tuple[str, ...] = VERDICTS) -> Entry | None:
        """Return a reviewer's last decision that was not taken back."""
        own_entries = (
            entry for entry in reversed(list(self._entries.values())) if entry.reviewer == reviewer
        )
        return next((entry for entry in own_entries if entry.kind in kinds), None)

    def find(self, number: int) -> Entry | None:
        """Return an entry that can be taken back."""
        return self._entries.get(number)

    @property
    def items(self) -> list[str]:
        """Items with a decision."""
        return list(self._by_item)

    @property
    def all(self) -> list[Entry]:
        """The decisions that count: one per item and reviewer."""
        return [entry for item in self.items for entry in self.of(item).values()]

    @property
    def checks(self) -> list[Entry]:
        """Decisions that show whether a label was wrong: the first on every item, if of a class."""
        first_checks: dict[str, Entry] = {}
        for entry in list(self._entries.values()):
            if entry.kind in VERDICTS and entry.item not in first_checks and self._counts(entry):
                first_checks[entry.item] = entry
        return [entry for entry in first_checks.values() if entry.kind == "label"]

    def status(self, item: str) -> int:
        """Return the status of an item, a position in `STATUSES`."""
        of_item = self.of(item)
        if self.arbiter in of_item:
            of_item = {self.arbiter: of_item[self.arbiter]}
        if not of_item:
            return OPEN
        if len(of_item) > 1:
            name = self.changes.name
            if len({(decision.kind, name(decision.value)) for decision in of_item.values()}) > 1:
                return DISPUTED
        return _STATUS_OF[next(iter(of_item.values())).kind]

    def label(self, item: str) -> str | None:
        """Return the class of the file that was decided; `None` where it is not gold."""
        if self.status(item) != DECIDED:
            return None
        of_item = self.of(item)
        decision = of_item.get(self.arbiter) or next(iter(of_item.values()))
        return decision.value

    def gold(self) -> dict[str, str]:
        """Return the class of the file of every item that is gold."""
        labels = ((item, self.label(item)) for item in self.items)
        return {item: label for item, label in labels if label is not None}

    @property
    def outdated(self) -> list[Entry]:
        """Decisions on labels of which none is in the file any more, and that nobody confirmed."""
        return (
            [entry for entry in self._last if entry.number in self._outdated]
            if self._outdated
            else []
        )

    @property
    def labels_now(self) -> dict[int, str]:
        """Fingerprints of the labels that items have now, by the numbers of outdated decisions."""
        if self.annotations is None:
            return {}
        return {
            entry.number: fingerprint(self.annotations, self._codes[entry.item])
            for entry in self.outdated
        }

    @property
    def apart(self) -> list[Entry]:
        """Decisions for a class that was merged of several which are apart again."""
        return [entry for entry in self._last if entry.number in self._apart] if self._apart else []

    @property
    def _last(self) -> Iterable[Entry]:
        """The last decision of every reviewer on every item."""
        return (
            entries[-1] for of_item in list(self._by_item.values()) for entries in of_item.values()
        )

    @property
    def changes(self) -> Changes:
        """The changes that are kept: those of the last entry."""
        return self._all_changes[self.changes_number]

    @property
    def changes_number(self) -> int:
        """The number of the entry of the changes that are kept; 0 if there are none."""
        return self._changes[-1].number if self._changes else 0

    def changes_of(self, number: int) -> Changes:
        """Return the changes of an entry, also if they were taken back."""
        return self._all_changes.get(number, self._all_changes[0])

    @property
    def last_change(self) -> Entry | None:
        """The entry of the changes that are kept."""
        return self._changes[-1] if self._changes else None


def fingerprint(annotations: Annotations, code: int) -> str:
    """Return a fingerprint of the labels of an item: hashes of annotator and class, at most 64.

    >>> annotations = Annotations.from_columns("aab", "xyx", ["cat", "dog", "cat"])
    >>> fingerprint(annotations, 1) in fingerprint(annotations, 0)
    True
    """
    return "".join(sorted(_hashes(annotations, code))[:_MOST])


def _hashes(annotations: Annotations, code: int) -> set[str]:
    rows = slice(annotations.index[code], annotations.index[code + 1])
    people = annotations.annotators[annotations.annotator[rows]].tolist()
    labels = annotations.classes[annotations.label[rows]].tolist()
    return {_hash(f"{len(name)} {name}{label}") for name, label in zip(people, labels, strict=True)}


def _hash(text: str) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    return blake2b(raw, digest_size=_DIGITS // 2).hexdigest()


def is_fingerprint(text: str) -> bool:
    """Return whether a text can be a fingerprint."""
    hashes = rf"([0-9a-f]{{{_DIGITS}}}){{0,{_MOST}}}"
    return re.fullmatch(hashes, text) is not None


def as_meant(entries: Iterable[Entry], classes: Iterable[str]) -> list[Entry]:
    """Return entries whose decisions have classes of the file, also those of older journals.

    Version 1 kept the names of the last fit. They are those of the changes that were kept then, or,
    where these have no such name, of earlier ones: a fit may not have known the last changes yet.
    """
    classes = list(classes)
    originals = {0: Changes().originals(classes)}  # by the number of the changes
    numbers, history, out = [0], [0], []
    for entry in entries:
        if entry.kind == "change":
            changes = Changes.from_dict(json.loads(entry.value))
            originals[entry.number] = changes.originals(classes)
            numbers.append(entry.number)
        elif entry.kind == "undo":
            numbers = [number for number in numbers if str(number) != entry.value]
        if numbers[-1] != history[-1]:
            history.append(numbers[-1])
        if entry.kind in VERDICTS and entry.changes is None:
            number = _shown_under(entry, {k: originals[k] for k in reversed(history)})
            value, inferred = (
                originals[number].get(name, name) for name in (entry.value, entry.inferred)
            )
            entry = entry._replace(value=value, inferred=inferred, changes=number)
        out.append(entry)
    return out


def _shown_under(entry: Entry, originals: Mapping[int, Mapping[str, str]]) -> int:
    """Return the number of the changes, the latest first, that have the names of a decision."""
    for names in ({entry.value, entry.inferred} - {""}, {entry.value} - {""}):
        for number, names_then in originals.items():
            if names <= names_then.keys():
                return number
    return 0
