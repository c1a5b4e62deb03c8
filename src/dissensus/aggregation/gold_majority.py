"""Gold majority: votes weighted by accuracy on items with gold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Floats
from ..answers.annotations import Part
from ..params import NonNegative, Positive
from ..method import FitContext, Fitted
from .votes import Record, WeightedVote, Weights


@dataclass(frozen=True, kw_only=True)
class GoldMajority(WeightedVote):
    """Votes weighted by accuracy on items with gold.

    Gold majority: votes weighted by accuracy on items with gold.

    The weight of an annotator is their accuracy on items with gold, with Laplace smoothing,
    (right + smoothing) / (labels + 2 * smoothing). Annotators without labels on such items get a
    default weight. Without gold it is the plain vote.

        weight[a] = (right[a] + smoothing) / (labels[a] + 2 smoothing)     on items with gold
        label[i] = argmax_t Σ_a weight[a] · 1(annotator a labels item i as t)

    When it fails: With few gold items per annotator the weights are mostly noise, and gold that is
    easier than the rest makes everybody look equally good. An annotator below chance level still
    counts for their label.

        R. Snow, B. O'Connor, D. Jurafsky, A. Ng. Cheap and fast - but is it good? Evaluating
        non-expert annotations for natural language tasks. EMNLP 2008

    Parameters
    ----------
    smoothing
        Right and wrong labels added to those of every annotator.
    default
        Weight of annotators without labels on gold items; by default the mean of the others.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> GoldMajority().fit(annotations, gold={"b": "1"}).quality.round(2).tolist()
    [0.67, 0.67, 0.33]
    """

    smoothing: Positive = 1.0
    default: NonNegative | None = None

    def estimate_params(self, fit: FitContext) -> Fitted:
        if fit.gold is None:
            default = 1.0 if self.default is None else self.default
            return Fitted(self.record(fit).weights(np.full(fit.annotations.n_annotators, default)))
        right, labels = fit.engine.add_up(_on_gold, fit.parts)
        accuracy = (right + self.smoothing) / (labels + 2 * self.smoothing)
        weight = Record(right, labels, fit.annotations.n_classes).impute(accuracy)
        if self.default is not None:
            weight[labels == 0] = self.default
        return Fitted(Weights(weight, accuracy))


def _on_gold(part: Part) -> tuple[Floats, Floats]:
    """Return the number of right labels and of all labels on gold items: (annotator)."""
    gold = np.asarray(part.gold)[part.item]
    known, right = gold >= 0, gold == part.label
    return part.by_annotator(right.astype(float)), part.by_annotator(known.astype(float))
