"""Clusters of annotators by variational Bayes, which may leave clusters empty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.dirichlet import expected_log, negative_kl
from ..base.probability import normalize
from ..base.arrays import Floats
from ..params import Count, NonNegative, Positive
from .dawid_skene import Counts
from .dswc import Clusters, Dswc, member_bound, membership, pooled


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
        given = pooled(counts.given_true, member) + self._base(len(true))
        return Clusters(
            normalize(true),
            normalize(size),
            normalize(given, axis=1).swapaxes(1, 2),
            member,
            expected_log(true),
            expected_log(size),
            expected_log(given, axis=1),
            counts.true,
            counts.given_true,
        )

    def log_prior(self, params: Clusters) -> float:
        """Return the terms of the bound for members, minus the KL divergence from the prior."""
        base, concentration = self._base(len(params.true)), np.array(self.concentration)
        true, size = params.true + self.prevalence, params.member.sum(axis=0) + concentration
        given = pooled(params.given_true, params.member) + base
        return (
            member_bound(params)
            + negative_kl(true, np.array(self.prevalence))
            + negative_kl(size, concentration)
            + negative_kl(given, base, axis=1)
        )

    def _base(self, n_classes: int) -> Floats:
        """Return the pseudo-counts of a cluster: (given class, true class)."""
        return self.smoothing + self.trust * np.eye(n_classes)
