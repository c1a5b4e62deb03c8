"""Scores of annotators as arrays, as a table, and in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._names import Names, as_names, decode
from .._plain import as_plain, as_rows
from .._relation import Floats, FrozenArrays, Integers
from ..annotations import Annotations
from ..result import Table
from .behaviour import Behaviour
from .copying import Copies
from .proportions import Proportion
from .verdicts import VERDICTS, evidence


@dataclass(frozen=True, eq=False, repr=False)
class AnnotatorScores(FrozenArrays):
    """All scores of all annotators; NaN, and -1 for codes, where they are undefined.

    Attributes
    ----------
    annotations, method
        The annotations, and the method of the consensus.
    behaviour
        Behaviour without reference to the truth.
    accuracy
        The share of labels that are the best class of the others, where others labelled the item.
    gold
        The accuracy on gold items; `None` without gold.
    guess
        The accuracy of guessing with the annotator's label marginals.
    certainty
        The others' mean probability of their best class.
    typical
        The accuracy of a typical annotator.
    confusion
        The confusion matrices under the posterior of the others.
    worst_class, worst_recall
        The class with the lowest recall, and this recall.
    bias, over_class
        The share of labels that would have to change for the class frequencies of the others, and
        the class that is overused.
    trace
        Of the confusion matrix, between 0 and the number of classes.
    spam_score, spam_low, spam_high
        Distance from a spammer, 0 to 1, with a 90 % interval.
    information
        The mutual information of label and truth in nats.
    ability, competence
        Of GLAD and MACE.
    first_half, second_half, drift
        The accuracy in both halves of an annotator's time, and the p-value of the difference.
    community
        The most probable community.
    copies
        Pairs who agree too much; `None` if not requested.
    code
        The index of the verdict in `VERDICTS`.
    """

    annotations: Annotations
    method: str
    behaviour: Behaviour
    accuracy: Proportion
    gold: Proportion | None
    guess: Floats  # (annotator), as all below unless noted
    certainty: Floats
    typical: float
    confusion: Floats  # (annotator, true class, given class)
    worst_class: Integers
    worst_recall: Floats
    bias: Floats
    over_class: Integers
    trace: Floats
    spam_score: Floats
    spam_low: Floats
    spam_high: Floats
    information: Floats
    ability: Floats
    competence: Floats
    first_half: Floats
    second_half: Floats
    drift: Floats
    community: Integers
    copies: Copies | None
    code: Integers

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{count} {word}" for word, count in self.verdict_counts.items())
        return f"<AnnotatorScores by {self.method}: {verdicts}>"

    @property
    def verdict(self) -> Names:
        """The verdict on every annotator."""
        return as_names(list(VERDICTS))[self.code]

    @property
    def verdict_counts(self) -> dict[str, int]:
        """The number of annotators with every verdict, the worst first."""
        count = np.bincount(self.code, minlength=len(VERDICTS)).tolist()
        return {word: n for word, n in zip(VERDICTS, count, strict=True) if n}

    @cached_property
    def evidence(self) -> list[str]:
        """The reason for every verdict, a sentence each."""
        return [evidence(self, position) for position in range(len(self.code))]

    @property
    def worst(self) -> Integers:
        """The annotators by code, the worst first."""
        right = np.nan_to_num(self.accuracy.value, nan=2.0)
        return np.lexsort((np.arange(len(right)), right, self.code))

    @property
    def overused(self) -> Names:
        """The class that an annotator overuses."""
        return decode(self.annotations.classes, self.over_class)

    def table(self) -> Table:
        """Return every score as a column, one row for every annotator."""
        nobody = np.full(len(self.code), -1)
        partner = nobody if self.copies is None else self.copies.partner
        columns: dict[str, Any] = {
            "annotator": self.annotations.annotators,
            "verdict": self.verdict,
            "labels": self.behaviour.labels,
            "scored": self.accuracy.among.astype(np.int64),
            "accuracy": self.accuracy.value,
            "accuracy_low": self.accuracy.low,
            "accuracy_high": self.accuracy.high,
            **self._columns("guess", "certainty"),
        }
        if self.gold is not None:
            columns |= {
                "gold_labels": self.gold.among.astype(np.int64),
                "gold_accuracy": self.gold.value,
                "gold_low": self.gold.low,
                "gold_high": self.gold.high,
            }
        return columns | {
            "agreement": self.behaviour.agreement,
            **self._columns("spam_score", "spam_low", "spam_high", "trace", "information"),
            "worst_class": decode(self.annotations.classes, self.worst_class),
            **self._columns("worst_recall", "bias", "overused"),
            "classes_used": self.behaviour.classes_used,
            "top_share": self.behaviour.top_share,
            "label_entropy": self.behaviour.entropy,
            "longest_run": self.behaviour.longest_run,
            "seconds": self.behaviour.seconds,
            **self._columns("ability", "competence", "first_half", "second_half", "drift"),
            "community": self.community,
            "copy_group": nobody if self.copies is None else self.copies.cluster,
            "copy_with": decode(self.annotations.annotators, partner),
            "evidence": as_names(self.evidence),
        }

    def _columns(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON."""
        rows = as_rows(self.table())
        return {
            "method": self.method,
            "n_annotators": len(rows),
            "typical_accuracy": as_plain(self.typical),
            "verdicts": self.verdict_counts,
            "copies": None if self.copies is None else self.copies.as_dict(),
            "annotators": [rows[position] for position in self.worst.tolist()],
        }
