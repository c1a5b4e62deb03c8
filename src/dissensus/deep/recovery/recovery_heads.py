"""Heads on one frozen encoder: an ensemble at the cost of one encoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..nn.features import Features
from ...params import Count
from .heads import Fraction, HeadMethod, Networks
from .members import bootstrap_weights, fold_weights, shared_split
from .method import FitInputs


@dataclass(frozen=True, kw_only=True)
class EnsembleOfHeads(HeadMethod):
    """Heads on one encoder that differ by initialization and by the items they learn from.

    Heads on one frozen encoder: an ensemble at the cost of one encoding.

    `sample` says how members differ beyond their random initialization:

    - `bootstrap`: every head has its own Poisson weights of the items; the third of the items that
    it
      never sees is its validation split;
    - `folds`: every head holds out another part of the items: less diverse, and each better;
    - `same`: items, order and dropout are the same for all: SeedBERT's rule on a frozen encoder,
    twenty
      times and more cheaper than `seedbert`, which fine-tunes a copy of the encoder for each. A
      linear head has one optimum, so votes of such heads collapse when trained to convergence;
      their diversity comes from hidden layers and early stopping.

        p(x) = mean over heads m of softmax(head_m(encoder(x)))

    When it fails: Members differ by sampling, not as people do. With few items the bootstrap leaves
    too little to each.

    Parameters
    ----------
    n
        Number of heads.
    sample
        Items of a head: a bootstrap sample, all but a fold, or the same for all.
    held_out
        With `same`: the fraction of the items in the validation split.
    """

    n: Count = 10
    sample: Literal["bootstrap", "folds", "same"] = "bootstrap"
    held_out: Fraction = 0.1

    def _fit(self, features: Features, context: FitInputs) -> Networks:
        size = self.n, len(features)
        if self.sample == "same":
            weight = shared_split(*size, self.held_out, context.seed)
        else:
            draw = fold_weights if self.sample == "folds" else bootstrap_weights
            weight = draw(*size, context.seed)
        network = self._heads(features, context, self.n, shared_dropout=self.sample == "same")
        return self._train(network, features, context, weight)
