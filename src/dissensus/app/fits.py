"""A finished fit, and the present state: the fit with the decisions that came after it.

A decision shows at once. The label of its item becomes the decided class, and the mean posterior
probability of the labels of an annotator a, the accuracy that pages show, moves by

    (1[label of a on the item = decided] - posterior of that label) / number of labels of a

until the next fit knows the decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..answers.annotations import Annotations
from ..base.arrays import Floats, Integers
from ..formats import Reading
from ..planning import Review, plan_review, random_order
from ..planning.label_errors import Checked
from ..reporting.report import Report
from ..reporting.report import report as report_on
from .decisions import OPEN, Changes, Decisions

_MOVED = 0.005  # change of an annotator's accuracy worth a word
_NAMED = 2  # annotators in one message


@dataclass(frozen=True, eq=False)
class Fit:
    """A finished fit.

    Attributes
    ----------
    report
        Everything that is known about the annotations with these changes and decisions.
    number
        Of the last entry of the journal that it knows.
    changes
        The changes to the annotations.
    gold
        Known labels from decisions; those of the file are in the report.
    unknown
        Decided items whose class or item is not there any more.
    skipped
        A sentence about every change that is kept and not possible any more.
    file
        The annotations without the changes.
    changes_number
        Of the entry of the changes; 0 if there are none.
    """

    report: Report
    number: int
    changes: Changes
    gold: Mapping[str, str]
    unknown: tuple[str, ...]
    skipped: tuple[str, ...]
    file: Annotations
    changes_number: int

    @property
    def annotations(self) -> Annotations:
        """The annotations with the changes."""
        return self.report.annotations

    @cached_property
    def codes(self) -> dict[str, int]:
        """Items by name."""
        return {name: code for code, name in enumerate(self.annotations.items.tolist())}

    @cached_property
    def people(self) -> dict[str, int]:
        """Annotators by name."""
        return {name: code for code, name in enumerate(self.annotations.annotators.tolist())}

    @cached_property
    def classes(self) -> dict[str, int]:
        """Classes by name."""
        return {name: code for code, name in enumerate(self.annotations.classes.tolist())}

    @cached_property
    def labelled(self) -> npt.NDArray[np.bool_]:
        """Which items have labels and no known label in the file."""
        in_file = set(self.report.reading.gold).difference(self.gold)
        is_known = [item in in_file for item in self.annotations.items.tolist()]
        return (self.annotations.labels_per_item > 0) & ~np.array(is_known, dtype=bool)

    @cached_property
    def random_order(self) -> Integers:
        """Items in the order in which they are drawn."""
        return random_order(self.annotations.items.tolist(), self.report.seed)

    @cached_property
    def split_votes(self) -> npt.NDArray[np.bool_]:
        """Which items have labels of more than one class."""
        label, index = self.annotations.label, self.annotations.index
        first_label = label[np.repeat(index[:-1].clip(max=max(len(label) - 1, 0)), np.diff(index))]
        differs = np.concatenate([[0], np.cumsum(label != first_label)])
        return np.asarray(differs[index[1:]] > differs[index[:-1]])

    def plan(self, seconds: Floats | None, checked: Checked | None) -> Review:
        """Return which labels to check."""
        is_decided = np.zeros(self.annotations.n_items, dtype=bool)
        is_decided[[self.codes[item] for item in self.gold]] = True
        return plan_review(
            self.report.doubt.certainty_without_gold,
            self.labelled & ~is_decided,
            n_items=int(self.labelled.sum()),
            seconds=seconds,
            checked=checked,
            target=self.report.doubt.target,
        )


def fit(
    reading: Reading,
    decisions: Decisions,
    *,
    name: str,
    method: str,
    target: float,
    seed: int,
    checked: Checked | None = None,
    folder: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Fit:
    """Return a fit of what was read, with the changes and decisions so far."""
    changes, number = decisions.changes, decisions.number
    possible, skipped = changes.possible(reading.annotations)
    annotations = possible.apply(reading.annotations)
    classes, items = set(annotations.classes.tolist()), set(annotations.items.tolist())
    decided = {item: changes.name(label) for item, label in decisions.gold().items()}
    gold = {k: label for k, label in decided.items() if label in classes and k in items}
    in_file = {k: changes.name(label) for k, label in reading.gold.items()}
    report = report_on(
        replace(reading, answers=annotations),
        possible.method or method,
        name=name,
        gold={**in_file, **gold},
        target=target,
        folder=folder,
        checked=checked,
        seed=seed,
        progress=progress,
    )
    unknown = tuple(k for k in decided if k not in gold)
    return Fit(
        report=report,
        number=number,
        changes=changes,
        gold=gold,
        unknown=unknown,
        skipped=skipped,
        file=reading.annotations,
        changes_number=decisions.changes_number,
    )


@dataclass(frozen=True, eq=False)
class Present:
    """The present state of every item and annotator.

    Attributes
    ----------
    label, certainty
        Of every item: (item).
    status
        Positions in `STATUSES`: (item).
    provisional
        Which items no fit knows yet as they are: (item).
    accuracy
        Mean probability that the labels of every annotator are right: (annotator).
    touched
        Which annotators no fit knows yet as they are: (annotator).
    """

    fit: Fit
    label: Integers
    certainty: Floats
    status: npt.NDArray[np.uint8]
    provisional: npt.NDArray[np.bool_]
    accuracy: Floats
    touched: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, fit: Fit, decisions: Decisions) -> Present:
        """Return the state after a fit and the decisions that it may not know."""
        annotations, result = fit.annotations, fit.report.result
        nothing = np.zeros(annotations.n_items, dtype=bool)
        nobody = np.zeros(annotations.n_annotators, dtype=bool)
        status = np.full(annotations.n_items, OPEN, dtype=np.uint8)
        accuracy = result.annotators["agreement"]  # NaN where it cannot be told
        present = cls(
            fit=fit,
            label=result.label,
            certainty=fit.report.doubt.certainty,
            status=status,
            provisional=nothing,
            accuracy=accuracy,
            touched=nobody,
        ).copy()
        for item in {*decisions.items, *fit.gold}:
            present.put(item, decisions)
        return present

    def copy(self) -> Present:
        """Return a copy whose arrays can be changed."""
        names = ("label", "certainty", "status", "provisional", "accuracy", "touched")
        return replace(self, **{name: getattr(self, name).copy() for name in names})

    def after(self, item: str, decisions: Decisions) -> Present:
        """Return the state after the decisions on an item have changed."""
        present = self.copy()
        present.put(item, decisions)
        return present

    def put(self, item: str, decisions: Decisions) -> None:
        """Update an item of a copy, and its annotators."""
        code = self.fit.codes.get(item)
        if code is None:
            return
        fit, result = self.fit, self.fit.report.result
        self.status[code] = decisions.status(item)
        decided = decisions.label(item)
        decided_code = None if decided is None else fit.classes.get(fit.changes.name(decided))
        fitted = fit.classes.get(fit.gold.get(item, ""))
        label, certainty = int(result.label[code]), float(fit.report.doubt.certainty[code])
        if decided_code != fitted and decided_code is not None:
            label, certainty = decided_code, 1.0
        elif decided_code != fitted:  # what the fit knew was taken back
            label, certainty = self._before(code)
        self._move(code, label if decided_code != fitted else None)
        self.label[code], self.certainty[code] = label, certainty
        self.provisional[code] = decided_code != fitted

    def _before(self, code: int) -> tuple[int, float]:
        """Return the most frequent label of an item, which no decision holds any more."""
        votes = self.votes(code)
        return int(votes.argmax()), float(votes.max() / max(votes.sum(), 1))

    def votes(self, code: int) -> Integers:
        """Return how often every class was given to an item."""
        annotations = self.fit.annotations
        labels = annotations.label[annotations.index[code] : annotations.index[code + 1]]
        return np.bincount(labels, minlength=annotations.n_classes)

    def _move(self, code: int, label: int | None) -> None:
        """Update the annotators of an item, whose label is another than in the fit, or none."""
        annotations, result = self.fit.annotations, self.fit.report.result
        rows = slice(annotations.index[code], annotations.index[code + 1])
        people, labels = annotations.annotator[rows], annotations.label[rows]
        stated = result.posterior[code, labels]
        size = annotations.labels_per_annotator[people]
        was_provisional, has_label = self.provisional[code], label is not None
        was = (labels == self.label[code]) - stated if was_provisional else np.zeros(len(labels))
        new = (labels == label) - stated if has_label else np.zeros(len(labels))
        np.add.at(self.accuracy, people, (new - was) / size)
        self.touched[people] |= has_label


class Progress(NamedTuple):
    """How far the review is.

    Attributes
    ----------
    review
        What is left to check: the share of wrong labels with its interval, and how many more to
        check, as far as can be expected; 0 seconds where the time is not known yet.
    decided
        Number of items that are decided.
    n_drawn
        Number of checked items that were drawn at random.
    n_identifiable
        Of how many items it can be judged whether labels are wrong, `None` where it can be of all.
    """

    review: Review
    decided: int
    n_drawn: int
    n_identifiable: int | None = None

    @property
    def identifiable(self) -> bool:
        """Whether it can be judged how many labels are wrong."""
        return not math.isnan(self.review.wrong[0])


def changes_in_words(old: Fit, new: Fit) -> str:
    """Return what a fit changed, in a sentence."""
    labels = dict(zip(old.annotations.items.tolist(), old.report.result.labels, strict=True))
    pairs = zip(new.annotations.items.tolist(), new.report.result.labels, strict=True)
    differ = [item for item, label in pairs if labels.get(item, label) != label]
    changed = sum(item not in new.gold for item in differ)
    decided = len(differ) - changed
    words = [f"{changed} other labels changed" if changed != 1 else "1 other label changed"]
    if decided:
        words.insert(0, f"{decided} decided label{'s' * (decided > 1)} replaced the inferred one")
    moved = []
    old_accuracy, new_accuracy = (
        compared.report.result.annotators["agreement"] for compared in (old, new)
    )
    for name, code in new.people.items():
        old_code = old.people.get(name)
        if old_code is not None:
            old_share, new_share = old_accuracy[old_code], new_accuracy[code]
            if abs(new_share - old_share) >= _MOVED:
                moved.append(
                    (
                        abs(new_share - old_share),
                        f"{name}'s accuracy {old_share:.2f} → {new_share:.2f}",
                    )
                )
    words += [text for _, text in sorted(moved, key=lambda pair: -pair[0])[:_NAMED]]
    return f"{'; '.join(words)}."
