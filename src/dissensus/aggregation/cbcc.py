"""Communities of annotators (after Venanzi et al. 2014): everybody errs a little like their own.

Annotator a belongs to one of `L` communities, and every row of their confusion matrix is drawn
around that of the community: Dirichlet(strength · matrix[c, t, :]). Those with few labels borrow
from their community, those with many have a matrix of their own. A large strength makes this
`dswc-vb`; one community makes it a hierarchical `bcc`. The original draws scores from a normal
distribution and passes messages; Dirichlets tell the same story and keep the updates closed.

Mean field over truth, members, matrices and shares climbs the evidence lower bound. The matrices
of the communities are points; `imagined` annotators with middling matrices keep them off zero.

    M. Venanzi, J. Guiver, G. Kazai, P. Kohli, M. Shokouhi. Community-based Bayesian aggregation
    models for crowdsourcing. WWW 2014. doi:10.1145/2566486.2567989
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import psi, zeta

from .._relation import Floats, Integers
from ..annotations import Annotations, Part
from ..params import Count, NonNegative, Positive
from ._dirichlet import expected_logs, log_beta, minus_divergence
from ._em import EMAggregator, logs, normalise, share
from .dawid_skene import Counts
from .dswc import Dswc, pooled

__all__ = ["Cbcc", "Communities"]

_NEWTON = 50  # steps at most, to a relative error of
_EXACT = 1e-9
_INSIDE = 0.9  # how far a step may go towards zero


class Communities(NamedTuple):
    """What the community model learns: Dirichlet counts, and logarithms expected under them."""

    true: Floats  # (true class): counts
    size: Floats  # (community): counts
    given_true: Floats  # (annotator, given class, true class): counts
    member: Floats  # (annotator, community): how probably they belong to it
    base: Floats  # (community, given class, true class): pseudo-counts of its members
    log_given: Floats  # (annotator and given class, true class)

    @property
    def prior(self) -> Floats:
        """How common every class is, in the mean: (true class)."""
        return share(self.true)

    @property
    def community_confusion(self) -> Floats:
        """What every community makes of every class: (community, true class, given class)."""
        return share(self.base.swapaxes(1, 2))

    @property
    def confusion(self) -> Floats:
        """What annotators make of classes, in the mean: (annotator, true class, given class)."""
        return share(self.given_true.swapaxes(1, 2))

    def reindex(self, indices: Integers, n_items: int) -> Communities:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        weight = share(self.size)
        member = np.concatenate([self.member, weight[None]])[indices]
        anybody = np.tensordot(weight, self.base, 1)[None]
        given = np.concatenate([self.given_true, anybody])[indices]
        log_given = expected_logs(given, axis=1).reshape(-1, len(self.true))
        return self._replace(given_true=given, member=member, log_given=log_given)


@dataclass(frozen=True, kw_only=True)
class Cbcc(EMAggregator[Communities, Counts]):
    """Confusion matrices drawn around those of communities, by variational Bayes.

    Parameters
    ----------
    L
        How many communities.
    strength
        How many pseudo-counts a community lends its members for every true class.
    concentration
        Pseudo-count of every community.
    prevalence
        Pseudo-count of every class.
    imagined
        How many imagined members every community has, right half of the time or more.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Cbcc().fit(annotations).labels.tolist()
    ['0', '1']
    """

    learns: ClassVar[type] = Communities

    max_iter: Count = 1000
    tol: NonNegative = 1e-7
    L: Count = 3
    strength: Positive = 10.0
    concentration: Positive = 1.0
    prevalence: Positive = 1.0
    imagined: Positive = 1.0

    def log_joint(self, part: Part, params: Communities) -> Floats:
        joint = part.labels @ params.log_given
        joint += expected_logs(params.true)
        joint[part.blank] = np.log(params.prior)  # where nothing was said, nothing is lost
        return joint

    def counts(self, part: Part, posterior: Floats) -> Counts:
        return Counts(np.einsum("it->t", posterior), part.labels.T @ posterior)

    def update(self, counts: Counts, last: Communities | None) -> Communities:
        n_classes = len(counts.true)
        if last is None:
            member = Dswc(L=self.L).first(counts).member
            start = pooled(counts.given_true, member) + np.exp(_middling(n_classes))
            base = self.strength * share(start, axis=1)
        else:
            member, base = last.member, last.base
        heard = counts.given_true.reshape(-1, n_classes, n_classes)
        given = heard + np.tensordot(member, base, 1)
        log_given = expected_logs(given, axis=1)
        if last is not None:
            member = self._membership(log_given, last)
            base = self._around(log_given, member, base)
        return Communities(
            counts.true + self.prevalence,
            member.sum(axis=0) + self.concentration,
            given,
            member,
            base,
            log_given.reshape(-1, n_classes),
        )

    def log_prior(self, params: Communities) -> float:
        """Return what the bound says beyond the labels themselves."""
        n_classes = len(params.true)
        log_given = params.log_given.reshape(-1, n_classes, n_classes)
        fits = _fits(log_given, params.base) + expected_logs(params.size) - logs(params.member)
        own = np.vdot(params.given_true - 1, log_given) - log_beta(params.given_true, 1).sum()
        imagined = self.imagined * _fits(_middling(n_classes)[None], params.base).sum()
        return (
            float((params.member * fits).sum() - own + imagined)
            + minus_divergence(params.true, np.array(self.prevalence))
            + minus_divergence(params.size, np.array(self.concentration))
        )

    def n_numbers(self, annotations: Annotations) -> int:
        cells = annotations.n_annotators * annotations.n_classes**2
        return super().n_numbers(annotations) + 6 * cells + annotations.n_annotators * self.L

    def confusion(self, params: Communities) -> Floats:
        return params.confusion

    def quality(self, params: Communities, agreement: Floats) -> Floats:
        return np.einsum("t,att->a", params.prior, params.confusion)

    def _membership(self, log_given: Floats, last: Communities) -> Floats:
        joint = _fits(log_given, last.base) + expected_logs(last.size)
        return normalise(joint - joint.max(axis=1, keepdims=True))[1]  # densities may be large

    def _around(self, log_given: Floats, member: Floats, base: Floats) -> Floats:
        """Return the best pseudo-counts of communities with these members."""
        total = np.tensordot(member.T, log_given, 1) + self.imagined * _middling(len(base[0]))
        mean = total / (member.sum(axis=0) + self.imagined)[:, None, None]
        return _dirichlet_around(mean, base)


def _middling(n_classes: int) -> Floats:
    """Return the log matrix of an imagined annotator: (given class, true class)."""
    return np.log(share(0.5 + np.eye(n_classes), axis=0))


def _fits(log_given: Floats, base: Floats) -> Floats:
    """Return how well matrices fit communities: (annotator, community)."""
    n_communities = len(base)
    flat = log_given.reshape(len(log_given), -1)
    fits = flat @ (base - 1).reshape(n_communities, -1).T
    return fits - log_beta(base, axis=1).sum(axis=1)


def _dirichlet_around(mean: Floats, base: Floats) -> Floats:
    """Return the counts of the most probable Dirichlets along axis 1, as many in all as `base`.

    The counts x maximise sum(x * mean - gammaln(x)), which is concave, with their sum fixed.
    Newton's method starts from `base` and is held inside the positive numbers; psi(x) ends up as
    `mean` less a shift for every sum.
    """
    counts = base
    for _ in range(_NEWTON):
        slope = mean - psi(counts)
        give = 1 / zeta(2, counts)  # 1 / psi'(counts)
        shift = (slope * give).sum(axis=1, keepdims=True) / give.sum(axis=1, keepdims=True)
        step = (slope - shift) * give
        worst = (-step / counts).max(axis=1, keepdims=True)  # from 1 on, a count would vanish
        counts = counts + step / np.maximum(1.0, worst / _INSIDE)
        if (np.abs(step) <= _EXACT * counts).all():
            break
    return counts
