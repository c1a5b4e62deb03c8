"""How the labels of similar items split.

    q_i = shares of the labels of the k items whose vectors have the largest cosine to that of i,
          with `smoothing` votes spread as all labels

k is the one of a few under which labels are most likely, each judged by its neighbours alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._relation import Floats, Integers
from ..params import Count, Positive
from ._base import Kept, Recovery, RecoveryMethod, Shown, Views
from ._kernels import in_pieces, unit

__all__ = ["Knn"]

_TRIED = (3, 5, 8, 12, 20, 30, 50, 80)


class Neighbours(Recovery):
    """Items whose labels are known, and how many of them are asked."""

    def __init__(self, known: Floats, label: Integers, prior: Floats, k: int) -> None:
        self.known = known  # (known item, feature): of length one
        self.label = label  # (known item)
        self.prior = prior  # (class): votes that every item has beforehand
        self.k = k

    def members(self, views: Views) -> Floats:
        assert views.vectors is not None
        votes = [_votes(cosine, self.label, [self.k], len(self.prior))[:, 0]
                 for cosine in in_pieces(unit(views.vectors), self.known)]  # fmt: skip
        p = np.concatenate([*votes, np.zeros((0, len(self.prior)))]) + self.prior
        return (p / p.sum(axis=1, keepdims=True))[None]

    def kept(self) -> Kept:
        arrays = {"known": self.known, "label": self.label, "prior": self.prior}
        return Kept({"k": self.k}, arrays)


@dataclass(frozen=True, kw_only=True)
class Knn(RecoveryMethod):
    """The split of the labels of the nearest items.

    Parameters
    ----------
    k
        How many are asked; `None` chooses it by how well labels are foreseen.
    smoothing
        Votes that every item has beforehand, spread as all labels.
    """

    k: Count | None = None
    smoothing: Positive = 1.0

    def learn(self, views: Views, shown: Shown) -> Neighbours:
        assert views.vectors is not None
        known, label = unit(views.vectors), shown.label
        # One more of every class: none is impossible.
        share = np.bincount(label, minlength=shown.n_classes) + 1.0
        prior = self.smoothing * share / share.sum()
        tried = [min(k, max(len(label) - 1, 1)) for k in _TRIED]
        if self.k is not None:
            return Neighbours(known, label, prior, min(self.k, len(label)))
        good, at = np.zeros(len(tried)), 0
        for cosine in in_pieces(known, known):
            rows = np.arange(len(cosine))
            cosine[rows, at + rows] = -np.inf  # nobody is asked about themselves
            p = _votes(cosine, label, tried, shown.n_classes) + prior
            mine = p[rows, :, label[at + rows]] / p.sum(axis=2)
            good, at = good + np.log(mine).sum(axis=0), at + len(cosine)
        return Neighbours(known, label, prior, tried[int(good.argmax())])

    def restore(self, kept: Kept) -> Neighbours:
        return Neighbours(**kept.arrays, k=kept.notes["k"])


def _votes(cosine: Floats, label: Integers, tried: list[int], n_classes: int) -> Floats:
    """Return the votes of the nearest, for several numbers of them: (item, number, class)."""
    nearest = np.argsort(-cosine, axis=1, kind="stable")[:, : max(tried)]
    votes = np.cumsum(np.eye(n_classes)[label[nearest]], axis=1)
    return votes[:, np.array(tried) - 1]
