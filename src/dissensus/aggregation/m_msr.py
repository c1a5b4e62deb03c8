"""M-MSR (Ma & Olshevsky 2020): how often pairs of annotators agree tells how good each one is.

If annotator a is right with probability p and otherwise names any other class alike, with
`skill = (n_classes * p - 1) / (n_classes - 1)`, two annotators agree with a probability that
makes `(n_classes * agreement - 1) / (n_classes - 1)` the product of their skills. So the matrix
of pairs has rank one, and skills are found by filling it in. Each estimate of a skill is a mean
over peers from which the highest and lowest few are left out, so a few who conspire do no harm.
Signs are those of the leading eigenvector of the matrix, most of it positive. Votes then weigh the
log-odds of being right.

Pairs are counted for annotators who share an item; the matrix is annotators × annotators, so
beyond `peers` of them only those with most labels are compared with each other, and everybody
else with those. Whoever shares no item with others weighs nothing.

    Q. Ma, A. Olshevsky. Adversarial crowdsourcing through robust rank-one matrix completion.
    NeurIPS 2020
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..params import Count, NonNegative
from ._base import Fit
from ._votes import Found, WeightedVote, Weights

__all__ = ["MMsr"]

_ZERO = 1e-9  # what is smaller is rounding
_BOUNDS = 1e-4, 1e4  # of factors, which pairs that agree by mere chance could drive apart
_SMALL = 100  # annotators up to which all eigenvectors are found at once


class _Pairs(NamedTuple):
    """How annotators agree with peers beyond chance."""

    product: Floats  # (annotator, peer): an estimate of the product of their skills, 0 if unknown
    met: npt.NDArray[np.bool_]  # (annotator, peer): whether they share an item


@dataclass(frozen=True, kw_only=True)
class MMsr(WeightedVote):
    """Votes weighted by skills that explain how pairs of annotators agree.

    Parameters
    ----------
    max_iter
        Rounds at most.
    tol
        Stop when a round changes the matrix of products by less than this.
    peers
        Annotators, those with most labels, who are all compared with each other.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001110001")
    >>> MMsr().fit(annotations).labels.tolist()
    ['0', '1', '0']
    """

    additive: ClassVar[bool] = False
    log_odds: ClassVar[bool] = True

    max_iter: Count = 1000
    tol: NonNegative = 1e-10
    peers: Count = 1000

    def weigh(self, fit: Fit) -> Found:
        n_items = max(int((fit.annotations.labels_per_item > 0).sum()), 1)
        n_classes = max(fit.annotations.n_classes, 2)
        margin = 1 / np.sqrt(n_items)
        skill, converged = self._skills(_Relation.of(fit), margin)
        skill = skill[: fit.annotations.n_annotators]
        skill = np.clip(skill, min(margin - 1 / (n_classes - 1), 0), 1 - margin)
        weight = np.log1p((n_classes - 1) * skill) - np.log1p(-skill)
        return Found(Weights(weight, (1 + (n_classes - 1) * skill) / n_classes), (), converged)

    def n_numbers(self, annotations: Annotations) -> int:
        return super().n_numbers(annotations) + 6 * min(annotations.n_annotators, self.peers) ** 2

    def _skills(self, annotations: _Relation, margin: float) -> tuple[Floats, bool]:
        """Return the skill of every annotator, 0 where nothing tells, and whether all is still."""
        order = np.argsort(-annotations.labels, kind="stable")
        peers, others = order[: self.peers], order[self.peers :]
        pairs = annotations.pairs(peers, peers)
        np.fill_diagonal(pairs.product, 0)
        np.fill_diagonal(pairs.met, False)
        skill = np.zeros(len(order))
        converged = True
        for group in _groups(pairs.met):
            among = np.ix_(group, group)
            found = _Pairs(pairs.product[among], pairs.met[among])
            size, still = complete(np.abs(found.product), found.met, margin, self)
            skill[peers[group]] = size * _signs(found)
            converged &= still
        skill[others] = annotations.fitted(others, peers, skill[peers])
        return skill, converged


class _Relation(NamedTuple):
    """Who said what, with gold as one more annotator."""

    annotations: sparse.csr_array[Any, Any]  # (annotator, item and class), counting repeats
    asked: sparse.csr_array[Any, Any]  # (annotator, item), counting repeats
    labels: Integers  # (annotator)
    n_classes: int

    @classmethod
    def of(cls, fit: Fit) -> _Relation:
        annotations, n_classes = fit.annotations, fit.annotations.n_classes
        item, annotator, label = (
            column.astype(np.int64)
            for column in (annotations.item, annotations.annotator, annotations.label)
        )
        n_annotators = annotations.n_annotators
        if fit.gold is not None:
            known = np.flatnonzero(fit.gold >= 0)
            item = np.concatenate([item, known])
            annotator = np.concatenate([annotator, np.full(len(known), n_annotators)])
            label = np.concatenate([label, fit.gold[known]])
            n_annotators += 1
        ones = np.ones(len(item))
        shape = (n_annotators, annotations.n_items)
        return cls(
            sparse.csr_array(
                (ones, (annotator, item * n_classes + label)),
                shape=(n_annotators, annotations.n_items * n_classes),
            ),
            sparse.csr_array((ones, (annotator, item)), shape=shape),
            np.bincount(annotator, minlength=n_annotators),
            max(n_classes, 2),
        )

    def pairs(self, some: Integers, peers: Integers) -> _Pairs:
        """Return how annotators agree with peers."""
        both = (self.asked[some] @ self.asked[peers].T).toarray()
        agreed = (self.annotations[some] @ self.annotations[peers].T).toarray()
        product = (self.n_classes * agreed / np.maximum(both, 1) - 1) / (self.n_classes - 1)
        product[np.abs(product) < _ZERO] = 0
        met = both > 0
        product[~met] = 0
        return _Pairs(product, met)

    def fitted(self, some: Integers, peers: Integers, skill: Floats) -> Floats:
        """Return the skills that explain best how annotators agree with peers of known skill.

        Least squares over common items, so pairs need not be looked at one by one.
        """
        agreed = self.annotations[some] @ (self.annotations[peers].T @ skill)
        both = self.asked[some] @ (self.asked[peers].T @ skill)
        weight = self.asked[some] @ (self.asked[peers].T @ skill**2)
        product = (self.n_classes * agreed - both) / (self.n_classes - 1)
        return np.where(weight > _ZERO, product / np.maximum(weight, _ZERO), 0)


def complete(
    size: Floats, met: npt.NDArray[np.bool_], margin: float, settings: MMsr
) -> tuple[Floats, bool]:
    """Return the vector whose products with itself these are, and whether it is still.

    `size` is (annotator, annotator), all at least zero and of use where they `met`. The few
    highest and lowest estimates are left out, half as many as the least connected has peers.
    """
    degree = met.sum(axis=1)
    few = max(int(degree.min()) // 2 - 1, 0)
    left, right = np.ones(len(size)), np.ones(len(size))
    for _ in range(settings.max_iter):
        before = left, right
        right = _estimate(size, met, degree, left, right, few, margin)
        left = _estimate(size, met, degree, right, left, few, margin)
        scale = np.sqrt(np.linalg.norm(right) / np.linalg.norm(left))  # only products matter
        left, right = left * scale, right / scale
        change = np.linalg.norm(left - before[0]) * np.linalg.norm(right)
        change += np.linalg.norm(right - before[1]) * np.linalg.norm(before[0])
        if change < settings.tol:
            return left, True
    return left, False


def _estimate(
    size: Floats,
    met: npt.NDArray[np.bool_],
    degree: Integers,
    other: Floats,
    own: Floats,
    few: int,
    margin: float,
) -> Floats:
    """Return a factor of every annotator from those of their peers."""
    if few == 0:
        mean = (size @ (1 / other)) / degree
        return np.where(mean > 0, np.clip(mean, *_BOUNDS), margin)
    told = np.sort(np.where(met, size / other, np.inf), axis=1)  # (annotator, rank)
    below = (told < own[:, None]).sum(axis=1)
    above = degree - (told <= own[:, None]).sum(axis=1)
    rank = np.arange(told.shape[1])
    kept = rank >= np.minimum(few, below)[:, None]
    kept &= rank < (degree - np.minimum(few, above))[:, None]
    count = kept.sum(axis=1)
    mean = np.where(kept, told, 0).sum(axis=1) / np.maximum(count, 1)
    mean = np.where(count > 0, mean, own)
    return np.where(mean > 0, np.clip(mean, *_BOUNDS), margin)


def _groups(met: npt.NDArray[np.bool_]) -> list[Integers]:
    """Return the groups of annotators that are linked by common items, those of one left out."""
    count, group = sparse.csgraph.connected_components(met, directed=False)
    order = np.argsort(group, kind="stable")
    cuts = np.cumsum(np.bincount(group, minlength=count))[:-1]
    return [members for members in np.split(order, cuts) if len(members) > 1]


def _signs(pairs: _Pairs) -> Floats:
    """Return on which side of chance annotators are; 0 where that cannot be told."""
    vector = _leading(pairs.product)
    vector[np.abs(vector) < _ZERO] = 0
    total = vector.sum()
    return np.sign(vector) * (np.sign(total) if abs(total) > _ZERO else 0)


def _leading(matrix: Floats) -> Floats:
    """Return the eigenvector of the largest eigenvalue of a symmetric matrix."""
    start = matrix.sum(axis=1)
    if len(matrix) > _SMALL and start.any():
        try:
            return sparse.linalg.eigsh(matrix, k=1, which="LA", v0=start)[1][:, 0]
        except sparse.linalg.ArpackNoConvergence:
            pass
    return np.linalg.eigh(matrix)[1][:, -1]
