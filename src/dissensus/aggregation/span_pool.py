"""Span pool: the mean of two models of spans, which are right about different ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from ..base.arrays import Floats, Integers
from . import as_method
from ..answers.annotations import Annotations
from ..params import Probability
from ..consensus_base import ConsensusContext
from .marks import MarkMethod, Proposed
from .spans import Candidates, by_overlap, coincide
from .objects import Objects
from .aggregation import Consensus

_BORDERS = "one-coin[prevalence=uniform]"


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

    def infer_marks(self, fit: ConsensusContext) -> Consensus:
        if not coincide(fit.answers):
            return by_overlap(self, fit, Objects(favour=self.favour))
        return self.span_result(fit, self.propose(fit))

    def propose(self, fit: ConsensusContext) -> Proposed:
        """Return every distinct span with its mean probability."""
        exact, groups = self.by_class.propose(fit), Objects().propose(fit)
        pairs = _borders(fit, exact, groups)
        exists, calibrated = (
            np.bincount(pairs.span, value[pairs.group] * pairs.posterior, len(exact.place))
            for value in (groups.probability, groups.calibrated)
        )
        known = fit.known[exact.candidates.item]
        order = np.argsort(groups.probability[pairs.group] * pairs.posterior, kind="stable")
        label, sure = exact.label.copy(), exact.sure.copy()
        label[pairs.span[order]] = groups.label[pairs.group[order]]  # of the most probable group
        sure[pairs.span[order]] = groups.sure[pairs.group[order]]
        return replace(
            exact,
            probability=np.where(known, exact.probability, (exact.probability + exists) / 2),
            calibrated=(exact.calibrated + calibrated) / 2,
            label=label,
            sure=sure,
        )


class _Borders(NamedTuple):
    """Distinct spans within groups of similar marks."""

    group: Integers
    span: Integers  # the candidate span
    posterior: Floats  # that these are the group's borders


def _borders(fit: ConsensusContext, exact: Proposed, groups: Proposed) -> _Borders:
    """Return the distinct spans of every group, and how probable their borders are."""
    answers, n_groups = fit.answers, len(groups.place)
    group, span = (one.candidates.members[: answers.n_elements] for one in (groups, exact))
    pairs, mark = np.unique(np.column_stack([group, span]), axis=0, return_inverse=True)
    choice = np.arange(len(pairs)) - np.searchsorted(pairs[:, 0], pairs[:, 0])
    given = Annotations.from_codes(
        group,
        answers.annotator[answers.answer],
        choice[mark],
        items=n_groups,
        annotators=answers.annotators,
        classes=max(2, int(choice.max()) + 1),
    )
    borders = as_method(_BORDERS).fit(given, engine=fit.engine)
    return _Borders(pairs[:, 0], pairs[:, 1], borders.posterior[pairs[:, 0], choice])
