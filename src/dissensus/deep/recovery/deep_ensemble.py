"""n independent networks: own initialization, order, dropout and validation split each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..nn.features import Features
from ...params import Count
from .heads import Fraction, HeadMethod
from .members import shared_split
from .method import FitInputs, Mixture, State


@dataclass(frozen=True, kw_only=True)
class DeepEnsemble(HeadMethod):
    """The mean of independently trained networks.

    n independent networks: own initialization, order, dropout and validation split each.

        p(x) = mean over networks m of p_m(x)

    When it fails: Its spread is uncertainty of the model: small where there are many items, also
    where people are split.

        B. Lakshminarayanan, A. Pritzel, C. Blundell. Simple and scalable predictive uncertainty
        estimation using deep ensembles. NeurIPS 2017.

    Parameters
    ----------
    n
        Number of networks.
    held_out
        Fraction of the items in the validation split of each.
    """

    n: Count = 5
    held_out: Fraction = 0.1

    def _fit(self, features: Features, context: FitInputs) -> Mixture:
        parts = {}
        for member in range(self.n):
            seed = context.seed + 7919 * member  # different from those of neighbouring seeds
            network = self._heads(features, context, 1, seed)
            weight = shared_split(1, len(features), self.held_out, seed)
            parts[str(member)] = self._train(network, features, context, weight)
        return Mixture(parts, np.full(self.n, 1 / self.n))

    def restore(self, state: State) -> Mixture:  # type: ignore[override]
        restore = super().restore
        return Mixture.restored(state, lambda _, part: restore(part))
