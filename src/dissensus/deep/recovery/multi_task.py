"""Two tasks: the label, and how much annotators disagree. An oracle: it sees the latter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ..nn import Batch, Features
from ...params import NonNegative
from .heads import Fraction, HeadMethod, Heads, Networks
from .members import Members, initial_weights, shared_split
from .base import entropy, shares_of
from .method import FitInputs


class TwoTaskHeads(Heads):
    """Heads that also predict disagreement, from 0 to 1."""

    target: Tensor  # (item): disagreement of the annotators

    def __init__(self, n: int, width: int, n_classes: int, *, weight: float, **more: Any) -> None:
        super().__init__(n, width, n_classes, weight=weight, **more)
        size = self.settings["hidden"] or width
        self.second = initial_weights(n, size, 1, seed=self.settings["seed"])
        self.second_bias = nn.Parameter(torch.zeros(n, 1, 1))

    def item_log_likelihood(self, batch: Batch) -> Tensor:
        if not self.training:
            return super().item_log_likelihood(batch)
        hidden = self.hidden(batch.x)
        log = torch.baddbmm(self.bias, hidden, self.last).log_softmax(dim=-1)
        error = (self.disagreement(hidden) - self.target[batch.item]) ** 2
        return self.mean_over_labels(log, batch) - self.settings["weight"] * error

    def disagreement(self, hidden: Tensor) -> Tensor:
        """Return the predicted disagreement, from 0 to 1: (member, item)."""
        return torch.baddbmm(self.second_bias, hidden, self.second)[..., 0].sigmoid()


@dataclass(frozen=True, kw_only=True)
class MultiTask(HeadMethod):
    """A network that learns the label and how much annotators disagree: an oracle.

    Two tasks: the label, and how much annotators disagree. An oracle: it sees the latter.

        loss = -log p_label(x_i) + weight (u(x_i) - H(q_i))²,   H: normalized entropy of shares

    p and u come from the same hidden layer. The recovered distribution is p.

    When it fails: It needs all annotations. The entropy of few votes is biased downwards, and so is
    what it learns of disagreement.

        J. Han, Z. Zhang, M. Schmitt, M. Pantic, B. Schuller. From hard to soft: towards more
        human-like emotion recognition by modelling the perception uncertainty. ACM Multimedia 2017.

    Parameters
    ----------
    weight
        Weight of the second task.
    held_out
        Fraction of the items in the validation split.
    """

    oracle: ClassVar[bool] = True
    network: ClassVar[type[Members]] = TwoTaskHeads

    weight: NonNegative = 1.0
    held_out: Fraction = 0.1

    def _fit(self, features: Features, context: FitInputs) -> Networks:
        assert context.annotations is not None
        target = entropy(shares_of(context.annotations.votes())) / np.log2(
            max(context.n_classes, 2)
        )
        network = self._heads(features, context, 1, weight=self.weight)
        network.register_buffer(
            "target", torch.as_tensor(target).to(network.mean), persistent=False
        )
        weight = shared_split(1, len(features), self.held_out, context.seed)
        return self._train(network, features, context, weight)
