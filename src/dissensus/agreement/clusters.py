"""Groups of annotators who agree with each other more than with the rest.

Annotators are as far apart as 1 minus their kappa; those who never met, as far as the two of them
are from others on average. Average linkage joins the nearest first; the number of groups is the
one with the best silhouette.

    P. J. Rousseeuw. Silhouettes. J. Comput. Appl. Mathematics 20, 1987.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._names import Names
from .._relation import Floats, Integers
from ..errors import OptionError
from .pairs import Pairs

__all__ = ["Clusters", "cluster", "distances"]

_MOST_CLUSTERS = 10
_MOST_ORDERED = 300  # annotators up to which the order of leaves is the best one
_WORTH = 0.1  # a silhouette below this means that there are no groups


@dataclass(frozen=True, eq=False)
class Clusters:
    """Groups of annotators, and an order in which they stand side by side.

    Attributes
    ----------
    group
        The group of every annotator, 0 for the largest: (annotator); -1 for those who met nobody
        often enough.
    order
        Annotators in an order for a heat map, without those of group -1.
    silhouette
        How well groups stand apart, up to 1; NaN where there is one group.
    """

    annotators: Names
    group: Integers
    order: Integers
    silhouette: float

    @property
    def n_clusters(self) -> int:
        """How many groups there are."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def sizes(self) -> list[int]:
        """How many annotators every group has, the largest first."""
        return np.bincount(self.group[self.group >= 0], minlength=self.n_clusters).tolist()

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries and numbers, ready for JSON; `None` for NaN."""
        return {
            "n_clusters": self.n_clusters,
            "silhouette": None if math.isnan(self.silhouette) else self.silhouette,
            "group": dict(zip(self.annotators.tolist(), self.group.tolist(), strict=True)),
            "order": self.annotators[self.order].tolist(),
        }


def distances(pairs: Pairs) -> tuple[Floats, Integers]:
    """Return distances between annotators who met somebody, and who these are."""
    full = 1 - pairs.matrix()
    np.fill_diagonal(full, np.nan)
    met = np.flatnonzero(~np.isnan(full).all(axis=1))
    full = full[np.ix_(met, met)]
    known = ~np.isnan(full)
    mean = np.where(known, full, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    full = np.where(known, full, (mean[:, None] + mean) / 2)
    np.fill_diagonal(full, 0)
    return np.maximum(full, 0), met


def cluster(pairs: Pairs, n_clusters: int | None = None) -> Clusters:
    """Return groups of annotators; as many as told, or as the silhouette suggests."""
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    apart, met = distances(pairs)
    n = len(met)
    if n_clusters is not None and not 1 <= n_clusters <= max(n, 1):
        raise OptionError(f"n_clusters = {n_clusters}, but there are {n} annotators to group")
    group = np.full(len(pairs.annotators), -1, dtype=np.int64)
    if n < 3:
        group[met] = 0
        return Clusters(pairs.annotators, group, met, math.nan)
    tree = hierarchy.linkage(
        squareform(apart, checks=False), "average", optimal_ordering=n <= _MOST_ORDERED
    )
    wanted = range(2, min(_MOST_CLUSTERS, n - 1) + 1) if n_clusters is None else [n_clusters]
    cuts = list(hierarchy.cut_tree(tree, list(wanted)).T)  # all at once: a cut costs n²
    scores = [silhouette(apart, cut) for cut in cuts]
    best = int(np.nanargmax(scores)) if not np.isnan(scores).all() else 0
    score = scores[best]
    one = n_clusters is None and not score >= _WORTH
    group[met] = 0 if one else _by_size(cuts[best])
    order = met[hierarchy.leaves_list(tree)]
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
    beside = total / size
    beside[own] = np.inf
    outside = beside.min(axis=1)
    most = np.maximum(inside, outside)
    score = np.divide(outside - inside, most, out=np.zeros_like(most), where=most > 0)
    return float(np.where(size[group] > 1, score, 0).mean())


def _by_size(group: Integers) -> Integers:
    """Return groups renumbered, the largest first."""
    order = np.argsort(-np.bincount(group), kind="stable")
    return np.argsort(order)[group]
