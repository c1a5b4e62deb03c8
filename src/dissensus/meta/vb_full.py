"""Variational Bayes in the place of EM: distributions of shares, means and matrices, not points.

The model is that of `em-full`, with b, c and right as the Dirichlets' own parameters. A step keeps

    q(share)          = Dirichlet(nu)               nu[k] = b + count[k]
    q(mean[k])        = Normal(m[k], 1 / s[k])      m[k] = Σ_n posterior[n, k] u[n] / s[k]
                                                    s[k] = tau + count[k]
    q(given[r, ·, k]) = Dirichlet(alpha[r, ·, k])   alpha = C + said

and takes the E step under their expected logarithms. A class known from few items is then told with
less certainty: a new item is Normal(m[k], 1 + 1 / s[k]). The objective is the evidence lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi
from typing import NamedTuple

import torch
from torch import Tensor

from ..params import Positive
from .em import Em, EmRule, Gaussians, logs, squared_distance
from .em_full import Confusions, counted
from .items import Items, share

__all__ = ["Dirichlets", "VariationalGaussians", "VbFull"]


class Spread(NamedTuple):
    """What is believed of the classes of every episode."""

    nu: Tensor  # (episode, class)
    mean: Tensor  # (episode, class, feature)
    precision: Tensor  # (episode, class): of the mean


class VariationalGaussians(Gaussians):
    """Classes as Gaussians of variance 1 with a distribution of their means and shares."""

    def update(self, items: Items, posterior: Tensor, last: Spread | None) -> Spread:  # type: ignore[override]
        count = posterior.sum(dim=1)
        precision = count + self.log_tau.exp()
        total = torch.einsum("enk,enm->ekm", posterior, items.u)
        return Spread(count + self.log_b.exp(), total / precision[:, :, None], precision)

    def log_joint(self, classes: Spread, u: Tensor) -> Tensor:  # type: ignore[override]
        nu, width = classes.nu, u.shape[2]
        log_share = nu.digamma() - nu.sum(dim=1, keepdim=True).digamma()
        far = squared_distance(u, classes.mean) + (width / classes.precision)[:, None]
        return log_share[:, None] - far / 2 - width / 2 * log(2 * pi)

    def log_predictive(self, classes: Spread, u: Tensor) -> Tensor:  # type: ignore[override]
        variance = (1 + 1 / classes.precision)[:, None]
        far = squared_distance(u, classes.mean) / (2 * variance) + u.shape[2] / 2 * variance.log()
        return logs(share(classes.nu))[:, None] - far

    def log_prior(self, classes: Spread) -> Tensor:  # type: ignore[override]
        tau, width = self.log_tau.exp(), classes.mean.shape[2]
        length = classes.mean.square().sum(dim=2)
        ratio = classes.precision / tau
        means = (width / ratio + tau * length - width + width * ratio.log()) / 2
        shares = divergence(classes.nu, self.log_b.exp().expand_as(classes.nu), 1)
        return -means.sum(dim=1) - shares


class Dirichlets(Confusions):
    """A Dirichlet for every row of every annotator's matrix; what is learned are its counts."""

    def update(self, items: Items, posterior: Tensor, last: Tensor | None) -> Tensor:
        return counted(items, posterior) + self.pseudo(items.n_classes)

    def log_given(self, crowd: Tensor) -> Tensor:
        return crowd.digamma() - crowd.sum(dim=2, keepdim=True).digamma()

    def log_prior(self, crowd: Tensor) -> Tensor:
        before = self.pseudo(crowd.shape[-1]).expand_as(crowd)
        return -divergence(crowd, before, 2).sum(dim=(1, 2))

    def confusion(self, crowd: Tensor) -> Tensor:
        return share(crowd, dim=2).transpose(2, 3)


def divergence(after: Tensor, before: Tensor, dim: int) -> Tensor:
    """Return the Kullback–Leibler divergence of Dirichlets, along their classes."""
    expected = after.digamma() - after.sum(dim=dim, keepdim=True).digamma()
    return (
        after.sum(dim=dim).lgamma()
        - before.sum(dim=dim).lgamma()
        - (after.lgamma() - before.lgamma()).sum(dim=dim)
        + ((after - before) * expected).sum(dim=dim)
    )


@dataclass(frozen=True, kw_only=True)
class VbFull(EmRule):
    """Variational Bayes on embeddings, one confusion matrix per annotator.

    Parameters
    ----------
    c
        Pseudo-count of every label, whatever is true.
    right
        More pseudo-counts of the right label.
    """

    c: Positive = 1.0
    right: Positive = 1.0
    tau: Positive = 0.1

    def build(self, width: int, n_classes: int) -> Em:
        return Em(VariationalGaussians(self.b, self.tau), Dirichlets(self.c, self.right), self)
