"""Candidate spans: every span that anybody marked is a question to all who looked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..base.probability import most_probable
from . import as_method
from ..answers.marks import Spans
from ..answers.matching import overlaps
from ..registry import registries
from ..consensus_base import ConsensusContext
from .existence import EXISTENCE
from .marks import MarkMethod, Proposed, fit_inner
from .objects import Objects
from .aggregation import Consensus

_TINY = 1e-300
_ENOUGH = 0.5  # share of marks that coincide with another's, of those that overlap one


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

    def infer_marks(self, fit: ConsensusContext) -> Consensus:
        overlap = self.match == "overlap"
        if overlap or (self.match == "auto" and not coincide(fit.answers)):
            given = self.aggregator != type(self)().aggregator
            aggregator = self.aggregator if given else EXISTENCE
            settings: Any = {"favour": self.favour, "threshold": self.threshold}
            return by_overlap(self, fit, Objects(aggregator=aggregator, **settings))
        return self.span_result(fit, self.propose(fit))

    def propose(self, fit: ConsensusContext) -> Proposed:
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
            candidates,
            inner,
            candidates.annotations.label < n_labels,
            inner.posterior[:, :n_labels].sum(axis=1),
            calibrated,
            place,
            label,
            sure,
        )


def by_overlap(method: MarkMethod, fit: ConsensusContext, objects: Objects) -> Consensus:
    """Return the result of spans that are matched by overlap, as that of a method for spans."""
    result = objects.infer(fit)
    note = "Spans are matched by overlap, and their borders are medians."
    spec = registries["spans"].describe(method)
    return replace(result, method=spec, notes=(*result.notes, note))


def coincide(spans: Spans) -> bool:
    """Return whether spans coincide often enough to be compared exactly."""
    return spans.n_annotators == 1 or coinciding(spans) >= _ENOUGH


def coinciding(spans: Spans) -> float:
    """Return the share of marks that coincide with another annotator's, of those that overlap one.

    >>> round(coinciding(Spans.from_columns("aaaa", "xyzx", [0, 0, 1, 5], [2, 2, 2, 7])), 2)
    0.67
    """
    one, two = overlaps(spans.mark_item, spans.place)
    others = spans.annotator[spans.answer[one]] != spans.annotator[spans.answer[two]]
    one, two = one[others], two[others]
    same = (spans.place[one] == spans.place[two]).all(axis=1)
    met, equal = (np.unique(np.concatenate(pair)) for pair in ((one, two), (one[same], two[same])))
    return len(equal) / len(met) if len(met) else 1.0
