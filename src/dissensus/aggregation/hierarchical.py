"""Hierarchical: annotators with few labels are shrunk towards the crowd."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import psi

from ..base.probability import normalize, safe_log
from ..base.arrays import Floats
from ..params import NonNegative, Probability
from .bcc import Bcc, DirichletPosterior
from .dawid_skene import Counts
from .dawid_skene_map import pseudo_counts

_LIMITS = (0.01, 2000.0)  # of a strength that is estimated


@dataclass(frozen=True, kw_only=True)
class Hierarchical(Bcc):
    """One confusion matrix per annotator, shrunk towards that of the crowd, by variational Bayes.

    Hierarchical: annotators with few labels are shrunk towards the crowd.

    The model is that of `bcc` with a learned prior. A priori an annotator has `strength`
    pseudo-counts for every true class. A fraction `pooled` of them follows the confusion matrix of
    the whole crowd, the rest is that of `bcc`, an annotator of the given `accuracy`:

        base[g, t] = strength * ((1 - pooled) * fixed[g, t] + pooled * crowd[g, t])

    The fixed part is an anchor: a free crowd matrix lets classes drift and merge, most of all where
    labels are few. The crowd's matrix, and with `estimate` the strength and the accuracy, maximize
    the evidence lower bound by Minka's fixed-point steps, which never lower it.

    When it fails: Where the crowd is not one crowd: annotators with few labels are taken for the
    average one, so a small group of experts among novices is underrated (`cbcc`). Shared errors
    make it too sure. With two annotators it falls behind a vote.

        T. P. Minka. Estimating a Dirichlet distribution. Technical report, 2000.
        R. J. Passonneau, B. Carpenter. The benefits of a model of annotation. TACL 2, 2014.
        doi:10.1162/tacl_a_00185

    Parameters
    ----------
    pooled
        The fraction of the pseudo-counts that follows the crowd.
    estimate
        Whether the strength, and without pooling the accuracy, are estimated as well. On small
        data the strength may reach its limit: all annotators are then alike.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Hierarchical().fit(annotations).labels.tolist()
    ['0', '1']
    """

    tol: NonNegative = 1e-7  # the crowd's matrix converges slowly
    pooled: Probability = 0.5
    estimate: bool = False

    def update(self, counts: Counts, last: DirichletPosterior | None) -> DirichletPosterior:
        n_classes = len(counts.true)
        given = counts.given_true.reshape(-1, n_classes, n_classes)
        if last is None:
            strength = np.clip(self.strength, *_LIMITS) if self.estimate else self.strength
            base = self.blend(float(strength), given.sum(axis=0))
        else:
            base = self.update_base(given, last.base)
        return self.posterior_params(counts, base)

    def update_base(self, given: Floats, base: Floats) -> Floats:
        """Return pseudo-counts under which the counts are at least as probable.

        In the Pólya urn, `draws` is the expected number of labels drawn from the base rather than
        from earlier labels of the annotator.
        """
        draws = base * (psi(base + given) - psi(base)).sum(axis=0)  # (given class, true class)
        strength = base[:, 0].sum()
        fixed = (1 - self.pooled) * pseudo_counts(strength, self.accuracy, len(base))
        if self.estimate:
            rate = (psi(strength + given.sum(axis=1)) - psi(strength)).sum()
            strength = np.clip(draws.sum() / rate, *_LIMITS) if rate > 0 else strength
        if self.pooled:
            return self.blend(strength, draws * (1 - fixed / base))
        right = (np.trace(draws) + self.accuracy) / (draws.sum() + 1)
        return pseudo_counts(strength, right if self.estimate else self.accuracy, len(base))

    def blend(self, strength: float, draws: Floats) -> Floats:
        """Return the pseudo-counts, with the crowd's matrix from these draws and one more."""
        crowd = normalize(draws + pseudo_counts(1, self.accuracy, len(draws)), axis=0)
        fixed = pseudo_counts(strength, self.accuracy, len(draws))
        return (1 - self.pooled) * fixed + self.pooled * strength * crowd

    def log_prior(self, params: DirichletPosterior) -> float:
        """Return minus the KL divergence, plus the log prior of the crowd's matrix."""
        base = params.base / params.base.sum(axis=0)
        one = pseudo_counts(1, self.accuracy, len(base))
        if self.pooled:
            crowd = (base - (1 - self.pooled) * one) / self.pooled
            return super().log_prior(params) + float((one * safe_log(crowd)).sum())
        right = base[0, 0]
        anchor = self.accuracy * safe_log(right) + (1 - self.accuracy) * safe_log(1 - right)
        return super().log_prior(params) + float(anchor)
