"""Hierarchical: those who gave few labels are taken to err as the crowd does.

The model is that of `bcc`, whose prior is learned too. Before any label is seen, an annotator has
`strength` pseudo-counts for every true class. A share `pooled` of them lies where the whole crowd
has put its labels, the rest where `accuracy` says, as in `bcc`:

    base[g, t] = strength * ((1 - pooled) * trust[g, t] + pooled * crowd[g, t])

The fixed half is an anchor: a crowd matrix that is free to move lets classes drift and merge,
most of all where labels are few. The crowd's matrix, and with `estimate` the strength and the
accuracy, climb the evidence lower bound by Minka's fixed-point steps, which never lower it.

    T. P. Minka. Estimating a Dirichlet distribution. Technical report, 2000.
    R. J. Passonneau, B. Carpenter. The benefits of a model of annotation. TACL 2, 2014.
    doi:10.1162/tacl_a_00185
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import psi

from .._relation import Floats
from ..params import NonNegative, Probability
from ._em import logs, share
from .bcc import Bcc, Beliefs
from .dawid_skene import Counts
from .dawid_skene_map import trust

__all__ = ["Hierarchical"]

_LIMITS = (0.01, 2000.0)  # of a strength that is estimated


@dataclass(frozen=True, kw_only=True)
class Hierarchical(Bcc):
    """One confusion matrix per annotator, drawn towards that of the crowd, by variational Bayes.

    Parameters
    ----------
    pooled
        The share of the pseudo-counts that lies where the crowd puts its labels.
    estimate
        Whether the strength, and where nothing is pooled the accuracy, are estimated as well. On
        small data a strength may run to its limit: everybody is then alike.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Hierarchical().fit(annotations).labels.tolist()
    ['0', '1']
    """

    tol: NonNegative = 1e-7  # the crowd's matrix moves in small steps
    pooled: Probability = 0.5
    estimate: bool = False

    def update(self, counts: Counts, last: Beliefs | None) -> Beliefs:
        n_classes = len(counts.true)
        given = counts.given_true.reshape(-1, n_classes, n_classes)
        if last is None:
            strength = np.clip(self.strength, *_LIMITS) if self.estimate else self.strength
            base = self.blend(float(strength), given.sum(axis=0))
        else:
            base = self.climb(given, last.base)
        return self.believed(counts, base)

    def climb(self, given: Floats, base: Floats) -> Floats:
        """Return pseudo-counts under which the counts are at least as probable.

        Of every count, `draws` says how many came new from the base rather than from what the
        annotator had said before.
        """
        draws = base * (psi(base + given) - psi(base)).sum(axis=0)  # (given class, true class)
        strength = base[:, 0].sum()
        fixed = (1 - self.pooled) * trust(strength, self.accuracy, len(base))
        if self.estimate:
            rate = (psi(strength + given.sum(axis=1)) - psi(strength)).sum()
            strength = np.clip(draws.sum() / rate, *_LIMITS) if rate > 0 else strength
        if self.pooled:
            return self.blend(strength, draws * (1 - fixed / base))
        right = (np.trace(draws) + self.accuracy) / (draws.sum() + 1)
        return trust(strength, right if self.estimate else self.accuracy, len(base))

    def blend(self, strength: float, draws: Floats) -> Floats:
        """Return the pseudo-counts, with a crowd like these draws and one more."""
        crowd = share(draws + trust(1, self.accuracy, len(draws)), axis=0)
        fixed = trust(strength, self.accuracy, len(draws))
        return (1 - self.pooled) * fixed + self.pooled * strength * crowd

    def log_prior(self, params: Beliefs) -> float:
        """Return minus the divergence, and how probable the crowd's matrix is with one draw."""
        base = params.base / params.base.sum(axis=0)
        one = trust(1, self.accuracy, len(base))
        if self.pooled:
            crowd = (base - (1 - self.pooled) * one) / self.pooled
            return super().log_prior(params) + float((one * logs(crowd)).sum())
        right = base[0, 0]
        anchor = self.accuracy * logs(right) + (1 - self.accuracy) * logs(1 - right)
        return super().log_prior(params) + float(anchor)
