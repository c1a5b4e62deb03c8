"""Weighted Dawid-Skene: votes weighted by a Dawid-Skene model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Floats
from ..answers.annotations import Part
from .votes import weighted_shares
from .dawid_skene import Confusion, DawidSkene


@dataclass(frozen=True, kw_only=True)
class Wds(DawidSkene):
    """Votes weighted by the diagonals of Dawid-Skene's confusion matrices.

    Weighted Dawid-Skene: votes weighted by a Dawid-Skene model.

    Dawid-Skene is fitted first. A vote of annotator a for class g then has the weight `confusion[a,
    g, g]`, the probability that a recognizes the class, and the label is the class with most
    weight. Softer than Dawid-Skene's own posterior, which is nearly certain as soon as a few labels
    agree.

        label[i] = argmax_g Σ_a confusion[a, g, g] · 1(annotator a labels item i as g)

    When it fails: The weight ignores how often an annotator gives a label wrongly: somebody who
    always answers g has confusion[a, g, g] = 1. It inherits bad matrices where Dawid-Skene has too
    few labels.

        T. Lefort, B. Charlier, A. Joly, J. Salmon. Identify ambiguous tasks combining crowdsourced
        labels by weighting areas under the margin. Transactions on Machine Learning Research, 2024.
        arXiv:2209.15380

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001111")
    >>> Wds().fit(annotations).posterior.round(1).tolist()
    [[0.7, 0.3], [0.0, 1.0]]
    """

    def part_posterior(self, part: Part, params: Confusion) -> Floats:
        weight = np.einsum("agg->ag", params.confusion)  # (annotator, given class)
        return weighted_shares(part, weight[part.annotator, part.label])
