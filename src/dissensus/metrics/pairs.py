"""Pairwise agreement of annotators on their common items.

Cohen's kappa takes chance agreement from the label marginals of each annotator on common items,
Scott's pi from both together. Only pairs with a common item are stored. An annotator who labelled
an item more than once counts once there, with a fraction of a vote for each label.

    J. Cohen. A coefficient of agreement for nominal scales. Educ. Psychol. Measurement 20, 1960.
    J. Cohen. Weighted kappa. Psychological Bulletin 70, 1968.
    W. A. Scott. Reliability of content analysis. Public Opinion Quarterly 19, 1955.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..base.names import Names
from ..base.plain import as_rows
from ..base.arrays import Floats, Integers
from ..answers.annotations import Annotations
from ..errors import OptionError
from .co_annotation import CoAnnotations
from .statistics import WeightsLike, weights_to_difference

PairMeasure = Literal["cohen", "percent", "scott"]

_MOST_ORDERED = 300  # annotators up to which the order of leaves is optimal
_WIDE = 5000  # annotators up to which a full matrix is allowed


@dataclass(frozen=True, eq=False)
class Pairs:
    """Agreement of every two annotators with a common item.

    Attributes
    ----------
    one, other
        The two annotators by code, `one` below `other`.
    overlap
        Items that both labelled.
    value
        Agreement; NaN for fewer than `min_overlap` common items.
    error
        Large-sample standard error: (pair).
    """

    annotators: Names
    measure: str
    one: Integers  # (pair)
    other: Integers  # (pair)
    overlap: Floats  # (pair)
    value: Floats  # (pair)
    error: Floats  # (pair)
    min_overlap: int

    def __len__(self) -> int:
        return len(self.one)

    @property
    def known(self) -> Any:
        """Which pairs have a value."""
        return ~np.isnan(self.value)

    @property
    def mean(self) -> float:
        """The mean over pairs with a value, each counting the same."""
        return float(self.value[self.known].mean()) if self.known.any() else math.nan

    def matrix(self) -> Floats:
        """Return the values as a full matrix, 1 on its diagonal: (annotator, annotator)."""
        n = len(self.annotators)
        if n > _WIDE:
            raise OptionError(f"a matrix of {n} annotators is too large (at most {_WIDE})")
        out = np.full((n, n), np.nan)
        out[self.one, self.other] = out[self.other, self.one] = self.value
        np.fill_diagonal(out, 1.0)
        return out

    def order(self) -> Integers:
        """Return annotators with a value, those who agree next to each other, by code.

        The order is that of average linkage, where 1 minus agreement is a distance; pairs without a
        value have the mean of the average distances of both.
        """
        from scipy.cluster import hierarchy
        from scipy.spatial.distance import squareform

        apart = 1 - self.matrix()
        np.fill_diagonal(apart, np.nan)
        paired = np.flatnonzero(~np.isnan(apart).all(axis=1))
        if len(paired) < 3:
            return paired
        apart = apart[np.ix_(paired, paired)]
        known = ~np.isnan(apart)
        mean = np.where(known, apart, 0).sum(axis=1) / known.sum(axis=1)
        apart = np.maximum(np.where(known, apart, (mean[:, None] + mean) / 2), 0)
        np.fill_diagonal(apart, 0)
        best = len(paired) <= _MOST_ORDERED
        tree = hierarchy.linkage(squareform(apart, checks=False), "average", optimal_ordering=best)
        return paired[hierarchy.leaves_list(tree)]

    def rows(self) -> list[dict[str, Any]]:
        """Return a table of the pairs, least agreement first, undefined last."""
        order = np.argsort(self.value, kind="stable")
        columns = {
            "one": self.annotators[self.one[order]],
            "other": self.annotators[self.other[order]],
            "items": self.overlap[order],
            "value": self.value[order],
            "error": self.error[order],
        }
        return as_rows(columns)


def pairwise(
    annotations: Annotations,
    measure: PairMeasure = "cohen",
    *,
    weights: WeightsLike = "identity",
    min_overlap: int | None = None,
    shrinkage: float = 0.0,
) -> Pairs:
    """Return the agreement of all co-annotating pairs of annotators.

    Parameters
    ----------
    measure
        `cohen`, `scott` or `percent`.
    weights
        A name of weights, or a matrix: (class, class).
    min_overlap
        Pairs with fewer common items have no value; by default 5, or 10 beyond four classes.
    shrinkage
        Shrink values towards 0 as if there were this many more common items without agreement
        beyond chance.

    Examples
    --------
    >>> annotations = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    >>> pairwise(annotations, min_overlap=1).matrix()[0]
    array([1. , 0.5, 0.5])
    """
    if measure not in ("cohen", "percent", "scott"):
        raise OptionError(f"no measure {measure!r} of pairs; there are cohen, percent, scott")
    if shrinkage < 0:
        raise OptionError(f"shrinkage = {shrinkage}, but it must be at least 0")
    least = min_overlap if min_overlap is not None else (5 if annotations.n_classes <= 4 else 10)
    pairs = CoAnnotations(annotations, weights_to_difference(weights, annotations.classes), least)
    value, error = pairs.values(measure)
    shrunk = pairs.overlap / (pairs.overlap + shrinkage)
    return Pairs(
        annotations.annotators,
        measure,
        pairs.one,
        pairs.other,
        pairs.overlap,
        value * shrunk,
        error * shrunk,
        least,
    )


def cohen_kappa(
    annotations: Annotations, *, weights: WeightsLike = "identity", min_overlap: int = 1
) -> float:
    """Return Cohen's kappa; of more than two annotators, the mean over pairs (Light's kappa)."""
    return pairwise(annotations, "cohen", weights=weights, min_overlap=min_overlap).mean


def scott_pi(
    annotations: Annotations, *, weights: WeightsLike = "identity", min_overlap: int = 1
) -> float:
    """Return Scott's pi; of more than two annotators, the mean over pairs."""
    return pairwise(annotations, "scott", weights=weights, min_overlap=min_overlap).mean
