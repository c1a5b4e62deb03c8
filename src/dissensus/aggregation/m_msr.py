"""M-MSR (Ma & Olshevsky 2020): skills from the agreement of pairs of annotators.

If annotator a is right with probability p and otherwise names any other class with equal
probability, with `skill = (n_classes * p - 1) / (n_classes - 1)`, two annotators agree with a
probability that makes `(n_classes * agreement - 1) / (n_classes - 1)` the product of their skills.
So the matrix of pairs has rank one, and skills are found by matrix completion. Each estimate of a
skill is a mean over peers without the highest and lowest few, which is robust against a few
adversaries. Signs are those of the leading eigenvector of the matrix, most of it positive. The
weights of votes are the log-odds of being right.

Pairs are counted for annotators who share an item; the matrix is annotators × annotators, so
beyond `peers` of them only those with most labels are compared with each other, and all others
with those. Annotators without co-annotated items have weight 0.

    (n_classes · agreement[a, b] - 1) / (n_classes - 1) = skill[a] · skill[b]
    weight[a] = log-odds of being right

When it fails: Where pairs of annotators share few items, agreements are noise and so are skills.
Annotators who agree for other reasons than being right, such as a common bias, get high skills.

    Q. Ma, A. Olshevsky. Adversarial crowdsourcing through robust rank-one matrix completion.
    NeurIPS 2020
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..answers.annotations import Annotations
from ..base.arrays import Floats, Integers
from ..method import Fitted
from ..params import Count, NonNegative
from .classes import ClassContext
from .votes import WeightedVote, Weights

_ZERO = 1e-9  # smaller values are rounding errors
_BOUNDS = 1e-4, 1e4  # of factors, which agreement by chance could drive apart
_SMALL = 100  # annotators up to which all eigenvectors are computed


class _Pairs(NamedTuple):
    """Agreement of annotators with peers beyond chance."""

    product: Floats  # (annotator, peer): an estimate of the product of their skills, 0 if unknown
    co_annotated: npt.NDArray[np.bool_]  # (annotator, peer): whether they share an item


@dataclass(frozen=True, kw_only=True)
class MMsr(WeightedVote):
    """Votes weighted by skills that explain the agreement of pairs of annotators.

    Parameters
    ----------
    max_iter
        Maximum number of iterations.
    tol
        Change of the matrix of products below which the fit has converged.
    peers
        Number of annotators, those with most labels, who are all compared with each other.
    begin
        The first factors: all `ones`, or `random` between zero and one (by the seed). With few
        labels the matrix has several completions; by default, names do not decide which is found.

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
    begin: Literal["ones", "random"] = "ones"

    def estimate_params(self, fit: ClassContext) -> Fitted:
        n_items = max(int((fit.answers.labels_per_item > 0).sum()), 1)
        n_classes = max(fit.answers.n_classes, 2)
        margin = 1 / np.sqrt(n_items)
        counts = _LabelCounts.of(fit)
        start = np.ones(len(counts.labels))
        if self.begin == "random":
            draws = np.random.RandomState(fit.seed % 2**32).random_sample(len(start))
            start = np.maximum(draws, _BOUNDS[0])  # drawn as published with crowd-kit
        skill, converged = self._skills(counts, margin, start)
        skill = skill[: fit.answers.n_annotators]
        skill = np.clip(skill, min(margin - 1 / (n_classes - 1), 0), 1 - margin)
        weight = np.log1p((n_classes - 1) * skill) - np.log1p(-skill)
        return Fitted(Weights(weight, (1 + (n_classes - 1) * skill) / n_classes), (), converged)

    def n_floats(self, annotations: Annotations) -> int:
        return super().n_floats(annotations) + 6 * min(annotations.n_annotators, self.peers) ** 2

    def _skills(self, counts: _LabelCounts, margin: float, start: Floats) -> tuple[Floats, bool]:
        """Return the skill of every annotator, 0 if unknown, and whether all have converged."""
        order = np.argsort(-counts.labels, kind="stable")
        peers, further = order[: self.peers], order[self.peers :]
        pairs = counts.pairs(peers, peers)
        np.fill_diagonal(pairs.product, 0)
        np.fill_diagonal(pairs.co_annotated, False)
        skill = np.zeros(len(order))
        converged = True
        for group in _groups(pairs.co_annotated):
            among = np.ix_(group, group)
            block = _Pairs(pairs.product[among], pairs.co_annotated[among])
            block_start = start[peers[group]]
            size, block_converged = complete(
                np.abs(block.product),
                block.co_annotated,
                margin=margin,
                settings=self,
                start=block_start,
            )
            skill[peers[group]] = size * _signs(block)
            converged &= block_converged
        skill[further] = counts.fitted(further, peers, skill[peers])
        return skill, converged


class _LabelCounts(NamedTuple):
    """Label counts, with gold as one more annotator."""

    cells: sparse.csr_array[Any, Any]  # (annotator, item and class), counting repeats
    items: sparse.csr_array[Any, Any]  # (annotator, item), counting repeats
    labels: Integers  # (annotator)
    n_classes: int

    @classmethod
    def of(cls, fit: ClassContext) -> _LabelCounts:
        annotations, n_classes = fit.answers, fit.answers.n_classes
        item, annotator, label = (
            column.astype(np.int64)
            for column in (annotations.item, annotations.annotator, annotations.label)
        )
        n_annotators = annotations.n_annotators
        if fit.gold is not None:
            gold_items = np.flatnonzero(fit.gold >= 0)
            item = np.concatenate([item, gold_items])
            annotator = np.concatenate([annotator, np.full(len(gold_items), n_annotators)])
            label = np.concatenate([label, fit.gold[gold_items]])
            n_annotators += 1
        entries = np.ones(len(item))
        shape = (n_annotators, annotations.n_items)
        return cls(
            sparse.csr_array(
                (entries, (annotator, item * n_classes + label)),
                shape=(n_annotators, annotations.n_items * n_classes),
            ),
            sparse.csr_array((entries, (annotator, item)), shape=shape),
            np.bincount(annotator, minlength=n_annotators),
            max(n_classes, 2),
        )

    def pairs(self, annotators: Integers, peers: Integers) -> _Pairs:
        """Return the agreement of annotators with peers."""
        n_shared = (self.items[annotators] @ self.items[peers].T).toarray()
        agreed = (self.cells[annotators] @ self.cells[peers].T).toarray()
        product = (self.n_classes * agreed / np.maximum(n_shared, 1) - 1) / (self.n_classes - 1)
        product[np.abs(product) < _ZERO] = 0
        product[n_shared == 0] = 0
        return _Pairs(product, n_shared > 0)

    def fitted(self, annotators: Integers, peers: Integers, skill: Floats) -> Floats:
        """Return the skills of annotators from their agreement with peers of known skill.

        Least squares over co-annotated items, without a matrix of pairs.
        """
        agreed = self.cells[annotators] @ (self.cells[peers].T @ skill)
        shared = self.items[annotators] @ (self.items[peers].T @ skill)
        weight = self.items[annotators] @ (self.items[peers].T @ skill**2)
        product = (self.n_classes * agreed - shared) / (self.n_classes - 1)
        return np.where(weight > _ZERO, product / np.maximum(weight, _ZERO), 0)


def complete(
    size: Floats,
    co_annotated: npt.NDArray[np.bool_],
    margin: float,
    settings: MMsr,
    start: Floats | None = None,
) -> tuple[Floats, bool]:
    """Return the vector whose outer product this is, and whether it has converged.

    `size` is (annotator, annotator), at least zero, and used for `co_annotated` pairs. The few
    highest and lowest estimates are left out, half as many as the least connected has peers.
    """
    degree = co_annotated.sum(axis=1)
    few = max(int(degree.min()) // 2 - 1, 0)
    estimate = partial(_estimate, size, co_annotated, degree, few=few, margin=margin)
    left = right = np.ones(len(size)) if start is None else start
    for _ in range(settings.max_iter):
        previous = left, right
        right = estimate(peer_factor=left, own_factor=right)
        left = estimate(peer_factor=right, own_factor=left)
        scale = np.sqrt(np.linalg.norm(right) / np.linalg.norm(left))  # only products matter
        left, right = left * scale, right / scale
        change = np.linalg.norm(left - previous[0]) * np.linalg.norm(right)
        change += np.linalg.norm(right - previous[1]) * np.linalg.norm(previous[0])
        if change < settings.tol:
            return left, True
    return left, False


def _estimate(
    size: Floats,
    co_annotated: npt.NDArray[np.bool_],
    degree: Integers,
    *,
    peer_factor: Floats,
    own_factor: Floats,
    few: int,
    margin: float,
) -> Floats:
    """Return a factor of every annotator from those of their peers."""
    if few == 0:
        mean = (size @ (1 / peer_factor)) / degree
        return np.where(mean > 0, np.clip(mean, *_BOUNDS), margin)
    ranked = np.sort(
        np.where(co_annotated, size / peer_factor, np.inf), axis=1
    )  # (annotator, rank)
    below = (ranked < own_factor[:, None]).sum(axis=1)
    above = degree - (ranked <= own_factor[:, None]).sum(axis=1)
    rank = np.arange(ranked.shape[1])
    is_middle = rank >= np.minimum(few, below)[:, None]
    is_middle &= rank < (degree - np.minimum(few, above))[:, None]
    count = is_middle.sum(axis=1)
    mean = np.where(is_middle, ranked, 0).sum(axis=1) / np.maximum(count, 1)
    mean = np.where(count > 0, mean, own_factor)
    return np.where(mean > 0, np.clip(mean, *_BOUNDS), margin)


def _groups(co_annotated: npt.NDArray[np.bool_]) -> list[Integers]:
    """Return the connected groups of at least two co-annotating annotators."""
    count, group = sparse.csgraph.connected_components(co_annotated, directed=False)
    order = np.argsort(group, kind="stable")
    cuts = np.cumsum(np.bincount(group, minlength=count))[:-1]
    return [members for members in np.split(order, cuts) if len(members) > 1]


def _signs(pairs: _Pairs) -> Floats:
    """Return the signs of skills; 0 where they are not identified."""
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
