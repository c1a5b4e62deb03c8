"""Bayes by backprop: every weight has a normal posterior, and members are draws of all weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ...base.arrays import Floats
from ..nn import Batch, Features
from ...params import Count, NonNegative
from .heads import Fraction, HeadMethod, Heads, Networks
from .members import Members, shared_split
from .mc_dropout import Sampled
from .method import FitInputs

_INITIAL_RHO = -5.0


class BayesianHeads(Heads):
    """Heads with normal posteriors of weights: sampled in training mode, means otherwise.

    `prior` is the weight of the divergence from the prior.
    """

    def __init__(self, n: int, width: int, n_classes: int, *, prior: float, **more: Any) -> None:
        super().__init__(n, width, n_classes, prior=prior, **more)
        self.first_rho = nn.Parameter(torch.full_like(self.first, _INITIAL_RHO))
        self.last_rho = nn.Parameter(torch.full_like(self.last, _INITIAL_RHO))

    def log_proba(self, x: Tensor) -> Tensor:
        x = ((x - self.mean) * self.scale).expand(self.n, -1, -1)
        last = self._sample(self.last, self.last_rho)
        first = self._sample(self.first, self.first_rho)
        hidden = torch.relu(torch.baddbmm(self.first_bias, x, first))
        return torch.baddbmm(self.bias, hidden, last).log_softmax(dim=-1)

    def _sample(self, mean: Tensor, rho: Tensor) -> Tensor:
        return mean + softplus(rho) * torch.randn_like(mean) if self.training else mean

    def penalty(self, batch: Batch) -> Tensor | float:
        pairs = (self.first, self.first_rho), (self.last, self.last_rho)
        return self.settings["prior"] * sum((_kl_from_prior(*pair) for pair in pairs), 0.0)


def _kl_from_prior(mean: Tensor, rho: Tensor) -> Tensor:
    std = softplus(rho)
    return ((std**2 + mean**2 - 1) / 2 - torch.log(std)).sum()


@dataclass(frozen=True, kw_only=True)
class BayesHead(HeadMethod):
    """A network whose weights are sampled for every member.

    Bayes by backprop: every weight has a normal posterior, and members are draws of all weights.

        w = mu + softplus(rho) ε,  ε ~ N(0, 1),  prior w ~ N(0, 1)
        loss = -mean log p(label | x, w) + weight KL(posterior | prior) / number of items

    When it fails: The prior's weight decides the spread; with many items the posterior is narrow,
    and it is one network.

        C. Blundell, J. Cornebise, K. Kavukcuoglu, D. Wierstra. Weight uncertainty in neural
        networks.
        ICML 2015. For disagreement: N. Raj Prabhu, N. Lehmann-Willenbrock, T. Gerkmann. End-to-end
        label uncertainty modeling in speech emotion recognition using Bayesian neural networks,
        2022.

    Parameters
    ----------
    draws
        Number of members.
    weight
        Weight of the prior; 1 is Bayes' rule, less trusts the labels more.
    held_out
        Fraction of the items in the validation split.
    """

    network: ClassVar[type[Members]] = BayesianHeads

    hidden: Count = 32
    draws: Count = 30
    weight: NonNegative = 0.1
    held_out: Fraction = 0.1

    def _fit(self, features: Features, context: FitInputs) -> Networks:
        network = self._heads(features, context, 1, prior=self.weight / len(features))
        weight = shared_split(1, len(features), self.held_out, context.seed)
        return self._train(network, features, context, weight)

    def _fitted(self, network: Members, held_out_proba: Floats | None = None) -> Sampled:
        return Sampled(network, held_out_proba, self.draws)
