"""Weighted Dawid-Skene: votes weigh as much as a Dawid-Skene model trusts them.

Dawid-Skene is fitted first. A vote of annotator a for class g then weighs `confusion[a, g, g]`,
the probability with which a recognises the class, and the label is the class with most weight.
Softer than Dawid-Skene's own posterior, which is nearly certain as soon as a few labels agree.

    T. Lefort, B. Charlier, A. Joly, J. Salmon. Identify ambiguous tasks combining crowdsourced
    labels by weighting areas under the margin. Transactions on Machine Learning Research, 2024.
    arXiv:2209.15380
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .._relation import Floats, Integers
from ..annotations import Part
from ._base import Fit, first_best
from ._votes import shares
from .dawid_skene import Confusion, DawidSkene

__all__ = ["Wds"]


@dataclass(frozen=True, kw_only=True)
class Wds(DawidSkene):
    """Votes weighted by the diagonals of Dawid-Skene's confusion matrices.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001111")
    >>> Wds().fit(annotations).posterior.round(1).tolist()
    [[0.7, 0.3], [0.0, 1.0]]
    """

    def judge(self, fit: Fit, params: Confusion) -> tuple[Floats, Integers]:
        trust = np.einsum("agg->ag", params.confusion)  # (annotator, given class)
        posterior = fit.over_items(partial(_count, trust=trust))
        return posterior, first_best(posterior)


def _count(part: Part, trust: Floats) -> Floats:
    return shares(part, trust[part.annotator, part.label])
