"""Groups of annotators who agree with each other more than with the rest.

The distance of two annotators is 1 minus their kappa; without common items, the mean of their
average distances to others. Average linkage; the number of groups has the best silhouette.

    P. J. Rousseeuw. Silhouettes. J. Comput. Appl. Mathematics 20, 1987.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._names import Names
from .._plain import as_plain
from .._relation import Floats, Integers
from ..errors import OptionError
from .pairs import Pairs

_MOST_CLUSTERS = 10
_MOST_ORDERED = 300  # annotators up to which the order of leaves is optimal
_MIN_SILHOUETTE = 0.1  # below, there are no groups


@dataclass(frozen=True, eq=False)
class Clusters:
    """Groups of annotators, and their order for a heat map.

    Attributes
    ----------
    group
        The group of every annotator, 0 for the largest: (annotator); -1 for those without enough
        common items with anybody.
    order
        Annotators in the order of leaves, without those of group -1.
    silhouette
        Separation of the groups, up to 1; NaN where there is one group.
    """

    annotators: Names
    group: Integers
    order: Integers
    silhouette: float

    @property
    def n_clusters(self) -> int:
        """The number of groups."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def sizes(self) -> list[int]:
        """The sizes of the groups, the largest first."""
        return np.bincount(self.group[self.group >= 0], minlength=self.n_clusters).tolist()

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON; `None` for NaN."""
        return {
            "n_clusters": self.n_clusters,
            "silhouette": as_plain(self.silhouette),
            "group": dict(zip(self.annotators.tolist(), self.group.tolist(), strict=True)),
            "order": self.annotators[self.order].tolist(),
        }


def cluster(pairs: Pairs, n_clusters: int | None = None) -> Clusters:
    """Return groups of annotators, `n_clusters` of them or as the silhouette suggests."""
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    apart = 1 - pairs.matrix()
    np.fill_diagonal(apart, np.nan)
    paired = np.flatnonzero(~np.isnan(apart).all(axis=1))  # those with a co-annotator
    apart = apart[np.ix_(paired, paired)]
    known = ~np.isnan(apart)
    mean = np.where(known, apart, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    apart = np.maximum(np.where(known, apart, (mean[:, None] + mean) / 2), 0)
    np.fill_diagonal(apart, 0)
    n = len(paired)
    if n_clusters is not None and not 1 <= n_clusters <= max(n, 1):
        raise OptionError(f"n_clusters = {n_clusters}, but there are {n} annotators to group")
    group = np.full(len(pairs.annotators), -1, dtype=np.int64)
    if n < 3:
        group[paired] = 0
        return Clusters(pairs.annotators, group, paired, math.nan)
    tree = hierarchy.linkage(
        squareform(apart, checks=False), "average", optimal_ordering=n <= _MOST_ORDERED
    )
    sizes = range(2, min(_MOST_CLUSTERS, n - 1) + 1) if n_clusters is None else [n_clusters]
    cuts = list(hierarchy.cut_tree(tree, list(sizes)).T)  # all at once: a cut costs n²
    scores = [silhouette(apart, cut) for cut in cuts]
    best = int(np.nanargmax(scores)) if not np.isnan(scores).all() else 0
    score = scores[best]
    by_size = np.argsort(-np.bincount(cuts[best]), kind="stable")  # the largest group first
    one = n_clusters is None and not score >= _MIN_SILHOUETTE
    group[paired] = 0 if one else np.argsort(by_size)[cuts[best]]
    order = paired[hierarchy.leaves_list(tree)]
    order = order[np.argsort(group[order], kind="stable")]
    return Clusters(pairs.annotators, group, order, math.nan if one else score)


def silhouette(apart: Floats, group: Integers) -> float:
    """Return the mean silhouette of groups; annotators alone in theirs count 0."""
    member = np.equal.outer(group, np.arange(group.max() + 1)).astype(np.float64)
    size = member.sum(axis=0)
    if len(size) < 2:
        return math.nan
    total = apart @ member  # (annotator, group)
    own = np.arange(len(group)), group
    inside = total[own] / np.maximum(size[group] - 1, 1)
    mean = total / size
    mean[own] = np.inf
    outside = mean.min(axis=1)
    most = np.maximum(inside, outside)
    score = np.divide(outside - inside, most, out=np.zeros_like(most), where=most > 0)
    return float(np.where(size[group] > 1, score, 0).mean())
