"""Bayes by backprop: every weight is a normal variable, and members are draws of all of them.

w = mu + softplus(rho) ε,  ε ~ N(0, 1),  prior w ~ N(0, 1)
loss = -mean log p(label | x, w) + weight KL(posterior | prior) / number of items

C. Blundell, J. Cornebise, K. Kavukcuoglu, D. Wierstra. Weight uncertainty in neural networks.
ICML 2015. For disagreement: N. Raj Prabhu, N. Lehmann-Willenbrock, T. Gerkmann. End-to-end label
uncertainty modeling in speech emotion recognition using Bayesian neural networks, 2022.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..params import Count, NonNegative
from ._base import Kept, Shown, Views
from ._networks import OnVectors, Share, labelled_once
from .mc_dropout import Passes

__all__ = ["BayesHead"]


@dataclass(frozen=True, kw_only=True)
class BayesHead(OnVectors):
    """A network whose weights are drawn anew for every member.

    Parameters
    ----------
    draws
        How many members.
    weight
        Of the prior; 1 is Bayes' rule, less trusts the labels more.
    held_out
        Share of the items that is held out to choose the epoch.
    """

    hidden: Count = 32
    draws: Count = 30
    weight: NonNegative = 0.1
    held_out: Share = 0.1

    def learn(self, views: Views, shown: Shown) -> Passes:
        from ._nets.bayes import Bayes
        from ._nets.members import taught
        from ._nets.sample_weights import alike

        assert views.vectors is not None
        network = Bayes(
            1, int(np.prod(views.vectors.shape[1:])), shown.n_classes, hidden=self.hidden,
            seed=shown.seed,
        )  # fmt: skip
        network.believing(self.weight / len(views))
        taught(
            network, network.see(views), labelled_once(shown.label, shown.n_classes),
            alike(1, len(views), self.held_out, shown.seed), seed=shown.seed, progress=shown.progress,
            **self.training(len(views)),
        )  # fmt: skip
        return self._drawn(network, shown.seed)

    def restore(self, kept: Kept) -> Passes:
        from ._nets.bayes import Bayes

        network = Bayes(**kept.notes["shape"]).load(kept.arrays)
        return self._drawn(network, kept.notes["seed"])

    def _drawn(self, network: object, seed: int) -> Passes:
        made = Passes(network)  # type: ignore[arg-type]
        made.passes, made.seed = self.draws, seed
        return made
