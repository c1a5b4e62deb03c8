"""Scores of annotators as arrays, as a table, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..aggregation.dawid_skene import pseudo_counts
from ..answers.annotations import Annotations
from ..answers.numbers import Numbers
from ..base.arrays import Floats, FrozenArrays, Integers
from ..base.names import Names, as_names, decode
from ..base.probability import Proportion, difference_p_value, normalize, proportion
from ..base.storage import as_plain, as_rows
from ..result import Result, Table
from .copying import Copies
from .correlation import Interval, mutual_information, spam_interval, spam_score, trace
from .label_scores import by_annotator
from .leave_one_out import PeerComparison
from .verdicts import VERDICTS, Behaviour, Evidence, explain, further_labels, time_order

if TYPE_CHECKING:
    from ..pages.charts import Figure
    from ..pages.sections import Section

_STRENGTH, _ACCURACY = 4.0, 0.7  # of the prior on confusion matrices, as in dawid-skene-map
# For people, the worst annotators first.
_SHOWN = (
    *("annotator", "verdict", "labels", "correlation", "correlation_low", "correlation_high"),
    "evidence",
)
_MIN_LABELS = 3.0  # labels of a true class from which on it can be the worst


@dataclass(frozen=True, eq=False, repr=False)
class AnnotatorScores(FrozenArrays, Result):
    """All scores of all annotators; NaN, and -1 for codes, where they are undefined.

    Scores of classes are computed when they are first used, and undefined for numbers.

    Attributes
    ----------
    annotations, scale
        The annotations or numbers, and their scale.
    method
        The method of the consensus that classes are compared with.
    behaviour
        Behaviour without reference to the truth.
    basis
        What the verdicts rest on: how far labels follow the items, and styles.
    code
        The index of the verdict in `VERDICTS`.
    gold
        The accuracy on gold items; `None` without gold, and for numbers.
    peers
        Classes compared with the consensus of the others; `None` for numbers.
    ability, competence
        Of GLAD and MACE, if requested.
    community
        The most probable community.
    copies
        Pairs who agree too much; `None` if not requested.
    confidence
        The confidence level of intervals of accuracies.
    """

    annotations: Annotations | Numbers
    scale: str
    method: str
    behaviour: Behaviour
    basis: Evidence
    code: Integers  # (annotator)
    gold: Proportion | None
    peers: PeerComparison | None
    ability: Floats  # (annotator)
    competence: Floats  # (annotator)
    community: Integers  # (annotator)
    copies: Copies | None
    confidence: float = 0.95

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{count} {word}" for word, count in self.verdict_counts.items())
        return f"<AnnotatorScores by {self.method}: {verdicts}>"

    @property
    def verdict(self) -> Names:
        """The verdict on every annotator."""
        return as_names(list(VERDICTS))[self.code]

    def judged(self, *verdicts: str) -> npt.NDArray[np.bool_]:
        """Return who has one of these verdicts: (annotator)."""
        return np.isin(self.code, [VERDICTS.index(word) for word in verdicts])

    @property
    def verdict_counts(self) -> dict[str, int]:
        """The number of annotators with every verdict, the worst first."""
        count = np.bincount(self.code, minlength=len(VERDICTS)).tolist()
        return {word: n for word, n in zip(VERDICTS, count, strict=True) if n}

    @cached_property
    def evidence(self) -> list[str]:
        """The reason for every verdict, a sentence each."""
        return [explain(self, position) for position in range(len(self.code))]

    @cached_property
    def labels_needed(self) -> Integers:
        """How many more labels a verdict needs."""
        return further_labels(self.basis, self.code)

    @property
    def correlation(self) -> Floats:
        """How far labels follow the items, between -1 and 1; 0 for random answers."""
        return self.basis.following.correlation

    @property
    def p_random(self) -> Floats:
        """The probability that answers ignore the items."""
        return self.basis.following.p_random

    @property
    def worst(self) -> Integers:
        """The annotators by code, the worst first."""
        follow = np.nan_to_num(self.correlation, nan=2.0)
        return np.lexsort((np.arange(len(follow)), follow, self.code))

    # Scores of classes

    @cached_property
    def accuracy(self) -> Proportion:
        """The share of labels that are the best class of the others, where these labelled it."""
        if self.peers is None:
            nothing = np.zeros(len(self.code))
            return proportion(nothing, nothing, self.confidence)
        right = by_annotator(self.annotations, np.nan_to_num(self.peers.credit))
        return proportion(right, self.peers.scored, self.confidence)

    @property
    def certainty(self) -> Floats:
        """The others' mean probability of their best class."""
        return self._undefined if self.peers is None else self.peers.certainty

    @cached_property
    def confusion(self) -> Floats:
        """The confusion matrices under the posterior of the others: (annotator, true, given)."""
        return normalize(self._smoothed)

    @cached_property
    def guess(self) -> Floats:
        """The accuracy of guessing with the annotator's label marginals."""
        n_given, n_true = self._counts.sum(axis=1), self._counts.sum(axis=2)
        return self._defined((normalize(n_given) * normalize(n_true)).sum(axis=1))

    @property
    def worst_class(self) -> Integers:
        """The class with the lowest recall."""
        return self._worst_class[0]

    @property
    def worst_recall(self) -> Floats:
        """The lowest recall of a class."""
        return self._worst_class[1]

    @property
    def bias(self) -> Floats:
        """The share of labels that would have to change for the class frequencies of the others."""
        return self._bias[0]

    @property
    def over_class(self) -> Integers:
        """The class that an annotator overuses, by code."""
        return self._bias[1]

    @property
    def overused(self) -> Names:
        """The class that an annotator overuses."""
        return self._decoded(self.over_class)

    @cached_property
    def trace(self) -> Floats:
        """The trace of the confusion matrix, between 0 and the number of classes."""
        return self._defined(trace(self.confusion))

    @cached_property
    def spam_score(self) -> Floats:
        """Distance from labels that ignore the items, 0 to 1."""
        return self._defined(spam_score(self.confusion))

    @cached_property
    def spam_bounds(self) -> Interval:
        """The mean of the spam score and its 90 % interval."""
        mean, low, high = spam_interval(self._smoothed, prior=0.0)
        low = np.minimum(low, spam_score(self.confusion))  # independent rows are never equal
        return Interval(*map(self._defined, (mean, low, high)))

    @cached_property
    def information(self) -> Floats:
        """The mutual information of label and truth in nats."""
        prior = normalize(self._counts.sum(axis=(0, 2)) + 1)
        return self._defined(mutual_information(self.confusion, prior))

    @property
    def first_half(self) -> Floats:
        """The accuracy in the first half of an annotator's time."""
        return self._halves[0]

    @property
    def second_half(self) -> Floats:
        """The accuracy in the second half of an annotator's time."""
        return self._halves[1]

    @property
    def drift(self) -> Floats:
        """The p-value of a change of accuracy over time."""
        return self._halves[2]

    def table(self) -> Table:
        """Return every score as a column, one row for every annotator."""
        follow, behaviour = self.basis.following, self.behaviour
        columns: dict[str, Any] = {
            "annotator": self.annotations.annotators,
            "verdict": self.verdict,
            **_kinds(self.annotations),
            "labels": behaviour.labels,
            "compared": follow.n_labels.astype(np.int64),
            "correlation": follow.correlation,
            "correlation_low": follow.low,
            "correlation_high": follow.high,
            "p_random": follow.p_random,
            "labels_needed": self.labels_needed,
        }
        if self.gold is not None:
            columns |= {"gold_labels": self.gold.among.astype(np.int64)}
            columns |= _bounded("gold", self.gold[1:], "gold_accuracy")
        if self.basis.styles is not None:
            for name, values in self.basis.styles._asdict().items():
                columns |= _bounded(name, values, name)
        if self.peers is not None:
            columns |= self._class_columns()
        nobody = np.full(len(self.code), -1)
        partner = nobody if self.copies is None else self.copies.partner
        return columns | {
            "values_used": behaviour.classes_used,
            "top_share": behaviour.top_share,
            "label_entropy": behaviour.entropy,
            "longest_run": behaviour.longest_run,
            "seconds": behaviour.seconds,
            "copy_group": nobody if self.copies is None else self.copies.cluster,
            "copy_with": decode(self.annotations.annotators, partner),
            "evidence": as_names(self.evidence),
        }

    @property
    def tables(self) -> Mapping[str, Table]:
        """Every score as a column."""
        return {"annotators": self.table()}

    @property
    def figures(self) -> Mapping[str, Figure]:
        """How far answers follow the items."""
        from ..aggregation.sections import annotators_figure

        figure = annotators_figure(self)
        return {} if figure is None else {"annotators": figure}

    def sections(self, top: int = 20) -> tuple[Section, ...]:
        """Return the first annotators, the worst first, and the evidence."""
        from .sections import annotators_sections

        return annotators_sections(self, top)

    def _chart(self) -> tuple[Figure | None, str]:
        nothing = "there is nothing to draw: no annotator can be compared with the others"
        return self.figures.get("annotators"), nothing

    def _first(self, most: int) -> Table:
        table, worst = self.table(), self.worst[:most]
        return {name: table[name][worst] for name in _SHOWN}

    def _class_columns(self) -> dict[str, Any]:
        names = ("ability", "competence", "first_half", "second_half", "drift", "community")
        return {
            "scored": self.accuracy.among.astype(np.int64),
            **_bounded("accuracy", self.accuracy[1:], "accuracy"),
            "guess": self.guess,
            "certainty": self.certainty,
            "agreement": self.behaviour.agreement,
            "spam_score": self.spam_score,
            "spam_low": self.spam_bounds.low,
            "spam_high": self.spam_bounds.high,
            "trace": self.trace,
            "information": self.information,
            "worst_class": self._decoded(self.worst_class),
            "worst_recall": self.worst_recall,
            "bias": self.bias,
            "overused": self.overused,
            **{name: getattr(self, name) for name in names},
        }

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON."""
        rows = as_rows(self.table())
        return {
            "method": self.method,
            "scale": self.scale,
            "n_annotators": len(rows),
            "verdicts": self.verdict_counts,
            "copies": None if self.copies is None else as_plain(self.copies.as_dict()),
            "annotators": [rows[position] for position in self.worst.tolist()],
        }

    @property
    def _undefined(self) -> Floats:
        return np.full(len(self.code), np.nan)

    def _defined(self, values: Floats) -> Floats:
        """Return scores of those who were compared, and NaN for the others."""
        return np.where(self.accuracy.among > 0, values, np.nan)

    def _decoded(self, codes: Integers) -> Names:
        return decode(getattr(self.annotations, "classes", as_names([])), codes)

    @cached_property
    def _counts(self) -> Floats:
        """Labels by true class: (annotator, true class, given class); no class for numbers."""
        return np.zeros((len(self.code), 0, 0)) if self.peers is None else self.peers.counts

    @property
    def _smoothed(self) -> Floats:
        return self._counts + pseudo_counts(_STRENGTH, _ACCURACY, self._counts.shape[1]).T

    @cached_property
    def _worst_class(self) -> tuple[Integers, Floats]:
        recall = np.einsum("att->at", self.confusion)
        recall = np.where(self._counts.sum(axis=2) >= _MIN_LABELS, recall, np.inf)
        least = recall.min(axis=1, initial=np.inf)
        judged = np.isfinite(least)
        lowest = recall.argmin(axis=1) if recall.shape[1] else np.zeros(len(recall), np.int64)
        return np.where(judged, lowest, -1), np.where(judged, least, np.nan)

    @cached_property
    def _bias(self) -> tuple[Floats, Integers]:
        """The total variation distance of given and true classes, and the overused class."""
        n_given, n_true = self._counts.sum(axis=1), self._counts.sum(axis=2)
        total = n_true.sum(axis=1)
        with np.errstate(invalid="ignore"):
            over = (n_given - n_true) / total[:, None]
        most = np.nan_to_num(over, nan=-1.0)
        overused = most.argmax(axis=1) if most.shape[1] else np.zeros(len(most), np.int64)
        return self._defined(np.abs(over).sum(axis=1) / 2), np.where(total > 0, overused, -1)

    @cached_property
    def _halves(self) -> tuple[Floats, Floats, Floats]:
        """The accuracy in both halves of an annotator's time, and the p-value of a change."""
        n = len(self.code)
        order = None if self.peers is None else time_order(self.annotations)
        if self.peers is None or order is None:
            return self._undefined, self._undefined, self._undefined
        order = order[~np.isnan(self.peers.credit[order])]
        annotator = self.annotations.annotator[order]
        labels = np.bincount(annotator, minlength=n)
        position = np.arange(len(order)) - np.repeat(np.cumsum(labels) - labels, labels)
        later = position >= np.repeat((labels + 1) // 2, labels)
        cell = annotator.astype(np.int64) + n * later
        count, right = (
            np.bincount(cell, values, 2 * n).reshape(2, n).astype(float)
            for values in (None, self.peers.credit[order])
        )
        with np.errstate(invalid="ignore"):
            first, second = right / count
        return first, second, difference_p_value(right, count)


def _kinds(annotations: Annotations | Numbers) -> dict[str, Any]:
    """Return the kinds of annotators as a column, if they are known."""
    kinds = getattr(annotations, "annotator_kinds", ())
    return {"kind": kinds} if len(kinds) else {}


def _bounded(name: str, values: Any, value_name: str) -> dict[str, Any]:
    """Return an estimate and its bounds as columns."""
    return dict(zip((value_name, f"{name}_low", f"{name}_high"), values, strict=True))
