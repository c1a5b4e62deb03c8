"""One network whose head is bent by what is known of a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from ..._relation import Floats
from ...annotations import Annotations
from ...nn.batches import Batch, Examples
from .heads import Heads

if TYPE_CHECKING:
    from ..people import PeopleMembers

__all__ = ["Bent"]


class Bent(Heads):
    """A head for every person, made from a common one and the person's features.

    To the training loop it is one member: the mean over people. In use it has one per person.
    """

    known: Tensor  # (person, feature)

    def __init__(
        self, persons: int, width: int, n_classes: int, *, features: int, seed: int = 0, **more: Any
    ) -> None:
        super().__init__(1, width, n_classes, seed=seed, **more)
        self.shape = {**self.shape, "persons": persons, "features": features}
        del self.shape["n"]
        inside = self.shape["hidden"] or width
        self.register_buffer("known", torch.zeros(persons, features))
        self.bend = nn.Parameter(torch.zeros(1, features, inside, n_classes))
        self.lean = nn.Parameter(torch.zeros(1, features, n_classes))

    def tie(
        self,
        features: Floats,
        marginal: Floats | None,
        annotations: Annotations | None,
        settings: PeopleMembers,
    ) -> None:
        """Take what is known of people."""
        self.known.copy_(torch.from_numpy(features))
        self.wanted = None if marginal is None else torch.from_numpy(marginal).to(self.mean)
        self.settings = settings
        self.own = None
        if annotations is not None and len(annotations):
            self.own = Examples(torch.zeros(annotations.n_items, 0), annotations)

    def groups(self) -> list[dict[str, Any]]:
        apart = [self.bend, self.lean]
        rest = [each for each in self.parameters() if all(each is not one for one in apart)]
        return [
            {"params": rest},
            {"params": apart, "weight_decay": self.settings.bend, "lr": 3 * self.settings.lr},
        ]

    def of(self, inside: Tensor, person: Tensor) -> Tensor:
        """Return what people say, as logarithms: (person, item, class)."""
        known = self.known[person]
        head = self.last[0] + torch.einsum("pf,fhk->phk", known, self.bend[0])
        bias = self.bias[0] + (known @ self.lean[0])[:, None]
        return torch.baddbmm(bias, inside.expand(len(person), -1, -1), head).log_softmax(dim=-1)

    def log_members(self, x: Tensor) -> Tensor:
        return self.of(self.inside(x), torch.arange(len(self.known)))

    def likelihoods(self, batch: Batch) -> Tensor:
        mean = self._mean(self.of(self.inside(batch.x), self._some()))
        return mean[batch.row, batch.label][None]

    def loss(self, batch: Batch) -> Tensor:
        inside, person = self.inside(batch.x), self._some()
        log = self.of(inside, person)
        share = self.share[0, batch.item]
        loss = -(share * self._mean(log)[batch.row, batch.label]).sum() / len(batch.item)
        if self.wanted is not None:
            wanted = self.wanted[person].clamp(min=1e-6)
            seen = log.exp().mean(dim=1).clamp(min=1e-6)  # (person, class)
            apart = (wanted * (wanted / seen).log()).sum(dim=1).mean()
            loss = loss + self.settings.marginal * apart
        return loss + self._of_their_own(inside, batch)

    def _of_their_own(self, inside: Tensor, batch: Batch) -> Tensor | float:
        """Return the loss of what people said themselves of the items of a batch."""
        if self.own is None or not self.settings.own:
            return 0.0
        theirs = self.own.batch(batch.item.numpy())
        row, who = theirs.row, theirs.annotator
        if not len(row):
            return 0.0
        known = self.known[who]
        each = inside[0, row]  # (annotation, hidden)
        logits = each @ self.last[0] + self.bias[0] + known @ self.lean[0]
        logits = logits + torch.einsum("nf,nh,fhk->nk", known, each, self.bend[0])
        mine = logits.log_softmax(dim=-1).gather(1, theirs.label[:, None])[:, 0]
        return -self.settings.own * (self.share[0, batch.item][row] * mine).mean()

    def _mean(self, log: Tensor) -> Tensor:
        """Return the belief of people together: (item, class)."""
        return log.logsumexp(dim=0) - np.log(len(log))

    def _some(self) -> Tensor:
        """Return people drawn for a step; all of them in use."""
        count = len(self.known)
        if not self.training or count <= self.settings.drawn:
            return torch.arange(count)
        return torch.randperm(count)[: self.settings.drawn]

    def weights(self) -> dict[str, Any]:
        return super().weights() | {"known": self.known.numpy()}
