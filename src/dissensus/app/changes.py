"""What if: annotators left out, classes merged or renamed, another method, and the effect of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Integers
from ..aggregation import aggregate
from ..metrics.agreement_init import krippendorff_alpha
from ..answers.annotations import Annotations
from ..errors import DataError, MethodError, OptionError
from ..registry import aggregators
from ..result import Aggregation


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
            known = annotations.annotators.tolist()
            missing = set(self.left_out).difference(known)
            if missing:
                raise DataError(f"no annotator {sorted(missing)[0]!r}")
            kept = ~np.isin(known, list(self.left_out))
            if not kept.any():
                raise OptionError("all annotators are left out; keep at least one")
            annotations = annotations.subset(annotators=kept)
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
    present: Aggregation,
    changes: Changes,
    *,
    method: str,
    gold: Mapping[str, str] | None,
    seed: int,
    before: Changes = Changes(),
) -> Effect:
    """Return the effect of changes to annotations, compared with the present result.

    The classes of `annotations` and `gold` are those of the file; the present result has the names
    of the changes `before`.
    """
    aggregators.create(method)  # fails early
    changed = changes.apply(annotations)
    classes = set(changed.classes.tolist())
    known = {item: changes.name(label) for item, label in (gold or {}).items()}
    known = {item: label for item, label in known.items() if label in classes}
    result = aggregate(changed, method, gold=known or None, seed=seed)
    was = ["undecided" if one is None else one for one in present.labels.tolist()]
    now = ["undecided" if one is None else one for one in result.labels.tolist()]
    new_names: dict[str, set[str]] = {"undecided": {"undecided"}}
    for label in annotations.classes.tolist():
        new_names.setdefault(before.name(label), set()).add(changes.name(label))

    def differ(old: str, new: str) -> bool:
        names = new_names.get(old, set())
        return new not in names or (len(names) > 1 and old != new)  # merged classes are apart again

    differs = [k for k, (a, b) in enumerate(zip(was, now, strict=True)) if differ(a, b)]
    return Effect(
        np.array(differs, dtype=np.int64),
        [was[k] for k in differs],
        [now[k] for k in differs],
        (mean_certainty(present), mean_certainty(result)),
        (krippendorff_alpha(present.annotations), krippendorff_alpha(changed)),
        annotations.n_items,
    )


def mean_certainty(result: Aggregation) -> float:
    """Return the mean confidence in labels that can be judged, NaN without any."""
    confidence = result.confidence[result.is_identifiable]
    return float(confidence.mean()) if len(confidence) else math.nan
