"""Dawid-Skene with annotators in clusters (Imamura, Sato, Sugiyama 2018).

Annotators of a cluster share a confusion matrix, so that few matrices are learned from many labels.
The number of clusters is fixed, or with priors (`DswcVb`) an upper bound: some may stay empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ..answers.annotations import Annotations, Part
from ..base.arrays import Floats, Integers
from ..base.probability import expected_log, log_normalize, negative_kl, normalize, safe_log
from ..params import Count, NonNegative, Positive
from .dawid_skene import ConfusionModel, Counts

_CELL = 1e-10  # added to every count


class Clusters(NamedTuple):
    """Means and expected logarithms of the parameters, and the counts behind them."""

    prior: Floats  # (true class)
    weight: Floats  # (cluster)
    cluster_confusion: Floats  # (cluster, true class, given class)
    member: Floats  # (annotator, cluster): membership probabilities
    log_prior: Floats  # (true class)
    log_weight: Floats  # (cluster)
    log_confusion: Floats  # (cluster, given class, true class)
    true: Floats  # (true class): counts
    given_true: Floats  # (annotator and given class, true class): counts

    @property
    def confusion(self) -> Floats:
        """Posterior mean of the confusion matrices: (annotator, true class, given class)."""
        return np.tensordot(self.member, self.cluster_confusion, 1)

    @property
    def log_given(self) -> Floats:
        """Expected logarithm of the matrices: (annotator and given class, true class)."""
        return np.tensordot(self.member, self.log_confusion, 1).reshape(-1, len(self.prior))

    def reindex(self, indices: Integers, n_items: int) -> Clusters:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        n_classes = len(self.prior)
        cells = self.given_true.reshape(-1, n_classes, n_classes)
        counts = np.concatenate([cells, np.zeros((1, n_classes, n_classes))])[indices]
        member = np.concatenate([self.member, self.weight[None]])[indices]
        return self._replace(member=member, given_true=counts.reshape(-1, n_classes))


@dataclass(frozen=True, kw_only=True)
class Dswc(ConfusionModel[Clusters]):
    """One confusion matrix per cluster of annotators, by mean-field inference.

    Dawid-Skene with annotators in clusters (Imamura, Sato, Sugiyama 2018).

    Annotator a belongs to one of `L` clusters, c with probability `weight[c]`, and has its
    confusion matrix: an item of class t gets label g with probability `confusion[c, t, g]`. Few
    matrices are learned from many labels, so this suits crowds in which nobody labels much.
    Mean-field variational inference treats truth and membership as independent and maximizes a
    bound on the evidence. The expected counts of annotators are sufficient, so an iteration costs
    what one of Dawid-Skene costs.

    The start is as published: matrices of single annotators, in the order of their nuclear norms,
    cut into `L` blocks. So is the iteration: truth and membership are both updated from the other's
    last value, unless that would lower the bound; then membership is updated from the new truth.

        P(labels, t, c) = Π_i prior[t_i] · Π_a weight[c_a] · Π confusion[c_a, t_i, label of a on i]

    When it fails: Where annotators are not of a few kinds, the clusters average over real
    differences; with many labels each, a matrix per annotator is better. The result depends on `L`.

        H. Imamura, I. Sato, M. Sugiyama. Analysis of minimax error rate for crowdsourcing and its
        application to worker clustering model. ICML, PMLR 80, 2018.

    Parameters
    ----------
    L
        Number of clusters.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Dswc(L=2).fit(annotations).labels.tolist()
    ['0', '1']
    """

    params_type: ClassVar[type] = Clusters
    matrix_copies: ClassVar[int] = 4

    max_iter: Count = 1000
    tol: NonNegative = 1e-8
    L: Count = 2

    def log_joint(self, part: Part, params: Clusters) -> Floats:
        joint = super().log_joint(part, params)
        joint[part.blank] = safe_log(params.prior)  # items without labels keep the prior
        return joint

    def update(self, counts: Counts, last: Clusters | None) -> Clusters:
        if last is None:
            return self.first(counts)
        parallel = self.clusters(counts, membership(last.given_true, last))
        if _bound(counts, parallel) >= _bound(counts, last):
            return parallel
        return self.clusters(counts, membership(counts.given_true, last))

    def first(self, counts: Counts) -> Clusters:
        """Return clusters that are blocks of annotators in the order of their nuclear norms."""
        n_classes = len(counts.true)
        single = normalize(counts.given_true.reshape(-1, n_classes, n_classes) + _CELL, axis=1)
        norm = np.linalg.norm(single, ord="nuc", axis=(1, 2)).round(9)
        order = np.argsort(-norm, kind="stable")
        bounds = len(order) * np.arange(self.L + 1) // self.L
        member = np.zeros((len(order), self.L))
        member[order, np.repeat(np.arange(self.L), np.diff(bounds))] = 1.0
        size = member.sum(axis=0)[:, None, None]
        total = np.tensordot(member.T, single, 1)
        mean = np.where(size > 0, total / np.maximum(size, 1), single.mean(axis=0))
        params = self.clusters(counts, member)
        return params._replace(cluster_confusion=mean.swapaxes(1, 2), log_confusion=safe_log(mean))

    def clusters(self, counts: Counts, member: Floats) -> Clusters:
        """Return the parameters that maximize the bound for these counts and members."""
        prior, weight = normalize(counts.true + _CELL), normalize(member.sum(axis=0) + _CELL)
        confusion = normalize(pooled(counts.given_true, member) + _CELL, axis=1)
        return Clusters(
            prior=prior,
            weight=weight,
            cluster_confusion=confusion.swapaxes(1, 2),
            member=member,
            log_prior=safe_log(prior),
            log_weight=safe_log(weight),
            log_confusion=safe_log(confusion),
            true=counts.true,
            given_true=counts.given_true,
        )

    def log_prior(self, params: Clusters) -> float:
        """Return the terms of the bound for members and for the constant in every cell."""
        cells = params.log_prior.sum() + params.log_weight.sum() + params.log_confusion.sum()
        return member_bound(params) + _CELL * float(cells)

    def n_floats(self, annotations: Annotations) -> int:
        return super().n_floats(annotations) + annotations.n_annotators * self.L

    def quality(self, params: Clusters, agreement: Floats) -> Floats:
        right = np.einsum("t,ctt->c", params.prior, params.cluster_confusion)
        return np.minimum(params.member @ right, 1.0)


def pooled(given_true: Floats, member: Floats) -> Floats:
    """Return the counts of clusters: (cluster, given class, true class)."""
    n_classes = given_true.shape[1]
    return np.tensordot(member.T, given_true.reshape(-1, n_classes, n_classes), 1)


def membership(given_true: Floats, params: Clusters) -> Floats:
    """Return membership probabilities of annotators with these counts."""
    n_clusters = len(params.weight)
    flat = given_true.reshape(len(params.member), -1)
    joint = flat @ params.log_confusion.reshape(n_clusters, -1).T + params.log_weight
    return log_normalize(joint)[1]


def member_bound(params: Clusters) -> float:
    """Return the terms of the bound for memberships."""
    return float((params.member * (params.log_weight - safe_log(params.member))).sum())


def _bound(counts: Counts, params: Clusters) -> float:
    """Return the bound without the entropy of the truth behind these counts."""
    likelihood = np.vdot(counts.given_true, params.log_given) + counts.true @ params.log_prior
    return float(likelihood) + member_bound(params)


@dataclass(frozen=True, kw_only=True)
class DswcVb(Dswc):
    """One confusion matrix per cluster of annotators, by variational Bayes.

    Clusters of annotators by variational Bayes, which may leave clusters empty.

    The model is that of `dswc`, with Dirichlet priors on the prevalence of classes and clusters and
    on the rows of the clusters' confusion matrices. Truth, membership and Dirichlets are updated in
    turns, so the evidence lower bound never falls. With a small `concentration`, superfluous
    clusters lose their members: `L` is then an upper bound on the number of clusters.

        weight ~ Dirichlet(concentration),   confusion[c, t, ·] ~ Dirichlet

    When it fails: As `dswc` where annotators are not of a few kinds. With few labels it may merge
    all into one cluster, which is then close to a vote.

        H. Imamura, I. Sato, M. Sugiyama. Analysis of minimax error rate for crowdsourcing and its
        application to worker clustering model. ICML, PMLR 80, 2018.

    Parameters
    ----------
    L
        Maximum number of clusters.
    concentration
        Pseudo-count of every cluster; below 1, superfluous clusters end without members.
    smoothing
        Pseudo-count of every cell of a cluster's confusion matrix.
    trust
        Additional pseudo-count of the diagonal.
    prevalence
        Pseudo-count of every class.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> DswcVb().fit(annotations).labels.tolist()
    ['0', '1']
    """

    L: Count = 10
    concentration: Positive = 0.1
    smoothing: Positive = 0.5
    trust: NonNegative = 1.0
    prevalence: Positive = 1.0

    def update(self, counts: Counts, last: Clusters | None) -> Clusters:
        if last is None:
            return self.clusters(counts, self.first(counts).member)
        return self.clusters(counts, membership(counts.given_true, last))

    def clusters(self, counts: Counts, member: Floats) -> Clusters:
        true = counts.true + self.prevalence
        size = member.sum(axis=0) + self.concentration
        cells = pooled(counts.given_true, member) + self._base(len(true))
        return Clusters(
            prior=normalize(true),
            weight=normalize(size),
            cluster_confusion=normalize(cells, axis=1).swapaxes(1, 2),
            member=member,
            log_prior=expected_log(true),
            log_weight=expected_log(size),
            log_confusion=expected_log(cells, axis=1),
            true=counts.true,
            given_true=counts.given_true,
        )

    def log_prior(self, params: Clusters) -> float:
        """Return the terms of the bound for members, minus the KL divergence from the prior."""
        base, concentration = self._base(len(params.true)), np.array(self.concentration)
        true, size = params.true + self.prevalence, params.member.sum(axis=0) + concentration
        cells = pooled(params.given_true, params.member) + base
        return (
            member_bound(params)
            + negative_kl(true, np.array(self.prevalence))
            + negative_kl(size, concentration)
            + negative_kl(cells, base, axis=1)
        )

    def _base(self, n_classes: int) -> Floats:
        """Return the pseudo-counts of a cluster: (given class, true class)."""
        return self.smoothing + self.trust * np.eye(n_classes)
