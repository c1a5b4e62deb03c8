"""Candidate spans: every span that anybody marked is a question to all who looked.

The question is one of classes, which any aggregator answers (`Candidates`), or that is averaged
with a model of objects and clutter (`SpanPool`): the two are right about different spans.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ..answers.annotations import Annotations
from ..answers.marks import Spans
from ..answers.matching import overlaps
from ..base.arrays import Floats, Integers
from ..base.probability import most_probable
from ..method import FitContext
from ..params import Probability
from ..registry import methods
from . import as_method
from .aggregation import AnswerAggregation
from .existence import EXISTENCE
from .objects import MarkMethod, Objects, Proposed, fit_inner

_TINY = 1e-300
_ENOUGH = 0.5  # share of marks that coincide with another's, of those that overlap one
_BORDERS = "one-coin[prevalence=uniform]"


@dataclass(frozen=True, kw_only=True)
class Candidates(MarkMethod):
    """Candidate spans as classes, decided by an aggregator.

    Candidate spans: every span that anybody marked is a question to all who looked.

    The answer to a candidate is its label, `other` where another mark of the annotator overlaps it,
    or `none`. These are classes, so any aggregator decides. A span is kept if its labels together
    are probable enough; of spans that overlap, those with the largest summed probability above the
    threshold are kept, and nested ones where one annotator nests.

    Long spans hardly ever coincide. Where fewer than half of the marks that overlap another
    annotator's coincide with it (`match=auto`), similar spans are matched as boxes are, and their
    borders are medians; see `objects`.

        P(span has label l) = posterior of class l, by any aggregator, of the candidate

    When it fails: Spans that most annotators miss count as errors of the few who marked them. With
    two annotators, one vote against one leaves every disputed span to the prior.

    Parameters
    ----------
    aggregator
        The aggregator, `name[setting=value,…]`. Spans that are matched by overlap are by default
        decided by `objects`.
    match
        `exact`: a candidate is one span; `overlap`: it is a group of similar spans; `auto`:
        overlap where fewer than half of the marks coincide with another's that they overlap.

    Examples
    --------
    >>> spans = Spans.from_columns("aaabbb", "xyzxyz", [0, 0, 1, 5, 5, 5], [2, 2, 2, 7, 7, 7])
    >>> table = Candidates().fit(spans).items
    >>> table["start"].tolist(), table["end"].tolist(), table["n_marked"].tolist()
    ([0, 5], [2, 7], [2, 3])
    """

    aggregator: str = "two-level"
    match: Literal["auto", "exact", "overlap"] = "auto"

    def infer_marks(self, fit: FitContext[Any]) -> AnswerAggregation:
        overlap = self.match == "overlap"
        if overlap or (self.match == "auto" and not coincide(fit.answers)):
            own_aggregator = self.aggregator != type(self)().aggregator
            aggregator = self.aggregator if own_aggregator else EXISTENCE
            settings: Any = {"favour": self.favour, "threshold": self.threshold}
            return by_overlap(self, fit, Objects(aggregator=aggregator, **settings))
        return self.span_result(fit, self.propose(fit))

    def propose(self, fit: FitContext[Any]) -> Proposed:
        """Return every distinct span with its probability and most probable label."""
        answers = fit.answers
        candidates = answers.candidates(fit.gold)
        inner = fit_inner(as_method(self.aggregator), fit, candidates)
        n_labels, n_candidates = len(answers.classes), len(candidates.item)
        place = np.zeros((n_candidates, 2))
        marks = answers.place if fit.gold is None else np.vstack([answers.place, fit.gold.place])
        place[candidates.members] = marks
        label = most_probable(inner.posterior[:, :n_labels])
        labels = inner.probabilities[:, :n_labels]  # (candidate, label)
        calibrated = labels.sum(axis=1)
        sure = labels[np.arange(n_candidates), label] / np.maximum(calibrated, _TINY)
        return Proposed(
            candidates=candidates,
            inner=inner,
            marked=candidates.annotations.label < n_labels,
            probability=inner.posterior[:, :n_labels].sum(axis=1),
            calibrated=calibrated,
            place=place,
            label=label,
            sure=sure,
        )


def by_overlap(method: MarkMethod, fit: FitContext[Any], objects: Objects) -> AnswerAggregation:
    """Return the result of spans that are matched by overlap, as that of a method for spans."""
    result = objects.infer(fit)
    note = "Spans are matched by overlap, and their borders are medians."
    spec = methods["spans"].describe(method)
    return replace(result, method=spec, notes=(*result.notes, note))


def coincide(spans: Spans) -> bool:
    """Return whether spans coincide often enough to be compared exactly."""
    return spans.n_annotators == 1 or coinciding(spans) >= _ENOUGH


def coinciding(spans: Spans) -> float:
    """Return the share of marks that coincide with another annotator's, of those that overlap one.

    >>> round(coinciding(Spans.from_columns("aaaa", "xyzx", [0, 0, 1, 5], [2, 2, 2, 7])), 2)
    0.67
    """
    first, second = overlaps(spans.mark_item, spans.place)
    between = spans.annotator[spans.answer[first]] != spans.annotator[spans.answer[second]]
    first, second = first[between], second[between]
    identical = (spans.place[first] == spans.place[second]).all(axis=1)
    met, equal = (
        np.unique(np.concatenate(pair))
        for pair in ((first, second), (first[identical], second[identical]))
    )
    return len(equal) / len(met) if len(met) else 1.0


@dataclass(frozen=True, kw_only=True)
class SpanPool(MarkMethod):
    """The mean of candidate spans as classes and of objects with borders.

    Span pool: the mean of two models of spans, which are right about different ones.

    Candidate spans as classes (`candidates`) know annotators' labels and borders, but take a span
    that few marked for an error of theirs. Objects with clutter (`objects`) know what annotators
    miss, but not exact borders. So a distinct span has as its probability the mean of

        candidates   the posterior that the span has one of the labels
        objects      the posterior that its group of similar marks is an object, times the posterior
                     that the borders of this group are those of the span

    Borders are a question to those who marked the group: each gives the right ones with a
    probability of their own (`one-coin`). So are labels. Where long spans hardly ever coincide,
    `objects` decides alone; see `candidates`.

    When it fails: Where a span is found by one annotator of many, the mean of both models is rarely
    above the threshold, so rare true spans are lost; `favour=recall` keeps more of them.

    Parameters
    ----------
    threshold
        Least probability of a span in the consensus. Below one half, because a span that one of
        the two models is sure of is often there.

    Examples
    --------
    >>> from dissensus.answers import Spans
    >>> spans = Spans.from_columns("aaabbb", "xyzxyz", [0, 0, 1, 5, 5, 5], [2, 2, 2, 7, 7, 7])
    >>> table = SpanPool().fit(spans).items
    >>> table["start"].tolist(), table["end"].tolist(), table["n_marked"].tolist()
    ([0, 5], [2, 7], [2, 3])
    """

    by_class: ClassVar[Candidates] = Candidates(match="exact")

    threshold: Probability = 0.35

    def infer_marks(self, fit: FitContext[Any]) -> AnswerAggregation:
        if not coincide(fit.answers):
            return by_overlap(self, fit, Objects(favour=self.favour))
        return self.span_result(fit, self.propose(fit))

    def propose(self, fit: FitContext[Any]) -> Proposed:
        """Return every distinct span with its mean probability."""
        exact, groups = self.by_class.propose(fit), Objects().propose(fit)
        pairs = _borders(fit, exact, groups)
        exists, calibrated = (
            np.bincount(pairs.span, value[pairs.group] * pairs.posterior, len(exact.place))
            for value in (groups.probability, groups.calibrated)
        )
        is_gold = fit.known[exact.candidates.item]
        order = np.argsort(groups.probability[pairs.group] * pairs.posterior, kind="stable")
        label, sure = exact.label.copy(), exact.sure.copy()
        label[pairs.span[order]] = groups.label[pairs.group[order]]  # of the most probable group
        sure[pairs.span[order]] = groups.sure[pairs.group[order]]
        return replace(
            exact,
            probability=np.where(is_gold, exact.probability, (exact.probability + exists) / 2),
            calibrated=(exact.calibrated + calibrated) / 2,
            label=label,
            sure=sure,
        )


class _Borders(NamedTuple):
    """Distinct spans within groups of similar marks."""

    group: Integers
    span: Integers  # the candidate span
    posterior: Floats  # that these are the group's borders


def _borders(fit: FitContext[Any], exact: Proposed, groups: Proposed) -> _Borders:
    """Return the distinct spans of every group, and how probable their borders are."""
    answers, n_groups = fit.answers, len(groups.place)
    group, span = (
        proposed.candidates.members[: answers.n_elements] for proposed in (groups, exact)
    )
    pairs, mark = np.unique(np.column_stack([group, span]), axis=0, return_inverse=True)
    choice = np.arange(len(pairs)) - np.searchsorted(pairs[:, 0], pairs[:, 0])
    annotations = Annotations.from_codes(
        group,
        answers.annotator[answers.answer],
        choice[mark],
        items=n_groups,
        annotators=answers.annotators,
        classes=max(2, int(choice.max()) + 1),
    )
    borders = as_method(_BORDERS).fit(annotations, engine=fit.engine)
    return _Borders(pairs[:, 0], pairs[:, 1], borders.posterior[pairs[:, 0], choice])
