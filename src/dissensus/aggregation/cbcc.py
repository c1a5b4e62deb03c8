"""Community-based BCC (after Venanzi et al. 2014): annotators resemble their community."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import psi, zeta

from ..base.dirichlet import expected_log, log_beta, negative_kl
from ..base.probability import log_normalize, normalize, safe_log
from ..base.arrays import Floats, Integers
from ..answers.annotations import Annotations, Part
from ..params import Count, NonNegative, Positive
from .dawid_skene import ConfusionModel, Counts
from .dswc import Dswc, pooled

_NEWTON_STEPS = 50
_TOLERANCE = 1e-9  # relative
_INSIDE = 0.9  # how far a step may go towards zero


class Communities(NamedTuple):
    """Dirichlet counts, and the expected logarithms under them."""

    true: Floats  # (true class): counts
    size: Floats  # (community): counts
    given_true: Floats  # (annotator, given class, true class): counts
    member: Floats  # (annotator, community): membership probabilities
    base: Floats  # (community, given class, true class): pseudo-counts of its members
    log_given: Floats  # (annotator and given class, true class)

    @property
    def prior(self) -> Floats:
        """Posterior mean of the prevalence: (true class)."""
        return normalize(self.true)

    @property
    def log_prior(self) -> Floats:
        """Expected logarithm of the prevalence: (true class)."""
        return expected_log(self.true)

    @property
    def community_confusion(self) -> Floats:
        """Confusion matrices of the communities: (community, true class, given class)."""
        return normalize(self.base.swapaxes(1, 2))

    @property
    def confusion(self) -> Floats:
        """Posterior mean of the confusion matrices: (annotator, true class, given class)."""
        return normalize(self.given_true.swapaxes(1, 2))

    def reindex(self, indices: Integers, n_items: int) -> Communities:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        weight = normalize(self.size)
        member = np.concatenate([self.member, weight[None]])[indices]
        average = np.tensordot(weight, self.base, 1)[None]
        given = np.concatenate([self.given_true, average])[indices]
        log_given = expected_log(given, axis=1).reshape(-1, len(self.true))
        return self._replace(given_true=given, member=member, log_given=log_given)


@dataclass(frozen=True, kw_only=True)
class Cbcc(ConfusionModel[Communities]):
    """Confusion matrices drawn around those of communities, by variational Bayes.

    Community-based BCC (after Venanzi et al. 2014): annotators resemble their community.

    Annotator a belongs to one of `L` communities, and every row of their confusion matrix is drawn
    around that of the community: Dirichlet(strength · matrix[c, t, :]). Annotators with few labels
    borrow from their community. A large strength makes this `dswc-vb`; one community makes it a
    hierarchical `bcc`. The original draws scores from a normal distribution and uses message
    passing; Dirichlets have closed-form updates.

    Mean-field variational Bayes over truth, membership, matrices and shares maximizes the evidence
    lower bound. The matrices of the communities are points; `imagined` annotators of middling
    accuracy keep them away from zero.

        confusion[a, t, ·] ~ Dirichlet(strength · matrix[community of a, t, ·])

    When it fails: With few annotators there is nothing to form communities of, and it takes many
    times as long as `hierarchical`, which is as accurate on public sets.

        M. Venanzi, J. Guiver, G. Kazai, P. Kohli, M. Shokouhi. Community-based Bayesian aggregation
        models for crowdsourcing. WWW 2014. doi:10.1145/2566486.2567989

    Parameters
    ----------
    L
        Number of communities.
    strength
        Pseudo-counts of a community's prior for every true class.
    concentration
        Pseudo-count of every community.
    prevalence
        Pseudo-count of every class.
    imagined
        Number of imagined members of every community, right at least half of the time.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Cbcc().fit(annotations).labels.tolist()
    ['0', '1']
    """

    params_type: ClassVar[type] = Communities
    matrix_copies: ClassVar[int] = 6

    max_iter: Count = 1000
    tol: NonNegative = 1e-7
    L: Count = 3
    strength: Positive = 10.0
    concentration: Positive = 1.0
    prevalence: Positive = 1.0
    imagined: Positive = 1.0

    def log_joint(self, part: Part, params: Communities) -> Floats:
        joint = super().log_joint(part, params)
        joint[part.blank] = np.log(params.prior)  # items without labels keep the prior
        return joint

    def update(self, counts: Counts, last: Communities | None) -> Communities:
        n_classes = len(counts.true)
        if last is None:
            member = Dswc(L=self.L).first(counts).member
            start = pooled(counts.given_true, member) + np.exp(_middling(n_classes))
            base = self.strength * normalize(start, axis=1)
        else:
            member, base = last.member, last.base
        given = counts.given_true.reshape(-1, n_classes, n_classes) + np.tensordot(member, base, 1)
        log_given = expected_log(given, axis=1)
        if last is not None:
            member = self._membership(log_given, last)
            base = self._community_base(log_given, member, base)
        return Communities(
            counts.true + self.prevalence,
            member.sum(axis=0) + self.concentration,
            given,
            member,
            base,
            log_given.reshape(-1, n_classes),
        )

    def log_prior(self, params: Communities) -> float:
        """Return the terms of the bound that do not depend on the labels."""
        n_classes = len(params.true)
        log_given = params.log_given.reshape(-1, n_classes, n_classes)
        log_density = (
            _log_density(log_given, params.base)
            + expected_log(params.size)
            - safe_log(params.member)
        )
        own = np.vdot(params.given_true - 1, log_given) - log_beta(params.given_true, 1).sum()
        imagined = self.imagined * _log_density(_middling(n_classes)[None], params.base).sum()
        return (
            float((params.member * log_density).sum() - own + imagined)
            + negative_kl(params.true, np.array(self.prevalence))
            + negative_kl(params.size, np.array(self.concentration))
        )

    def n_floats(self, annotations: Annotations) -> int:
        return super().n_floats(annotations) + annotations.n_annotators * self.L

    def _membership(self, log_given: Floats, last: Communities) -> Floats:
        joint = _log_density(log_given, last.base) + expected_log(last.size)
        return log_normalize(joint - joint.max(axis=1, keepdims=True))[1]  # densities may be large

    def _community_base(self, log_given: Floats, member: Floats, base: Floats) -> Floats:
        """Return the best pseudo-counts of communities with these members."""
        total = np.tensordot(member.T, log_given, 1) + self.imagined * _middling(len(base[0]))
        mean = total / (member.sum(axis=0) + self.imagined)[:, None, None]
        return _fit_dirichlet(mean, base)


def _middling(n_classes: int) -> Floats:
    """Return the log matrix of an imagined annotator: (given class, true class)."""
    return np.log(normalize(0.5 + np.eye(n_classes), axis=0))


def _log_density(log_given: Floats, base: Floats) -> Floats:
    """Return the log density of matrices under communities: (annotator, community)."""
    n_communities = len(base)
    flat = log_given.reshape(len(log_given), -1)
    log_density = flat @ (base - 1).reshape(n_communities, -1).T
    return log_density - log_beta(base, axis=1).sum(axis=1)


def _fit_dirichlet(mean: Floats, base: Floats) -> Floats:
    """Return the counts of the most probable Dirichlets along axis 1, with the sum of `base`.

    The counts x maximise sum(x * mean - gammaln(x)), which is concave, with their sum fixed.
    Newton's method starts from `base` and stays positive; at the end psi(x) is `mean` minus a shift
    for every sum.
    """
    counts = base
    for _ in range(_NEWTON_STEPS):
        gradient = mean - psi(counts)
        inverse = 1 / zeta(2, counts)  # 1 / psi'(counts)
        shift = (gradient * inverse).sum(axis=1, keepdims=True)
        shift /= inverse.sum(axis=1, keepdims=True)
        step = (gradient - shift) * inverse
        worst = (-step / counts).max(axis=1, keepdims=True)  # from 1 on, a count would vanish
        counts = counts + step / np.maximum(1.0, worst / _INSIDE)
        if (np.abs(step) <= _TOLERANCE * counts).all():
            break
    return counts
