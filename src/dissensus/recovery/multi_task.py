"""Two tasks at once: the label, and how much annotators disagree. An oracle: it sees the latter.

    loss = -log p_label(x_i) + weight (u(x_i) - H(q_i))²,   H the entropy of the shares, 0 to 1

p and u come from the same hidden layer. The recovered distribution is p; with `match`, p flattened
or sharpened until its entropy is u.

    J. Han, Z. Zhang, M. Schmitt, M. Pantic, B. Schuller. From hard to soft: towards more human-like
    emotion recognition by modelling the perception uncertainty. ACM Multimedia 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._relation import Floats
from ..params import NonNegative
from ._base import Kept, Shown, Views
from ._flattening import with_entropy
from ._networks import Networks, OnVectors, Share, labelled_once
from .measures import entropy, shares_of

__all__ = ["MultiTask"]


class Disagreeing(Networks):
    """A network that foresees labels and disagreement."""

    match: bool = False

    def disagreement(self, views: Views) -> Floats:
        """Return the entropy that is foreseen, from 0 to 1: (item)."""
        from ._nets.two_tasks import TwoTasks

        assert isinstance(self.network, TwoTasks)
        return self.network.disagreement(self.network.see(views))

    def members(self, views: Views) -> Floats:
        p = super().members(views)
        if not self.match:
            return p
        wanted = self.disagreement(views) * np.log2(p.shape[2])
        return with_entropy(p[0], wanted)[None]


@dataclass(frozen=True, kw_only=True)
class MultiTask(OnVectors):
    """A network that learns the label and how much annotators disagree: an oracle.

    Parameters
    ----------
    weight
        Of the second task.
    match
        Give distributions the entropy that is foreseen.
    held_out
        Share of the items that is held out to choose the epoch.
    """

    oracle: ClassVar[bool] = True

    weight: NonNegative = 1.0
    match: bool = False
    held_out: Share = 0.1

    def learn(self, views: Views, shown: Shown) -> Disagreeing:
        from ._nets.members import taught
        from ._nets.sample_weights import alike
        from ._nets.two_tasks import TwoTasks

        assert views.vectors is not None
        assert shown.annotations is not None
        spread = entropy(shares_of(shown.annotations.votes())) / np.log2(max(shown.n_classes, 2))
        network = TwoTasks(
            1, int(np.prod(views.vectors.shape[1:])), shown.n_classes, hidden=self.hidden,
            dropout=self.dropout, input_dropout=self.input_dropout, seed=shown.seed,
        )  # fmt: skip
        network.aim(spread, self.weight)
        taught(
            network, network.see(views), labelled_once(shown.label, shown.n_classes),
            alike(1, len(views), self.held_out, shown.seed), seed=shown.seed, progress=shown.progress,
            **self.training(len(views)),
        )  # fmt: skip
        return self._made(network)

    def restore(self, kept: Kept) -> Disagreeing:
        from ._nets.two_tasks import TwoTasks

        return self._made(TwoTasks(**kept.notes).load(kept.arrays))

    def _made(self, network: object) -> Disagreeing:
        made = Disagreeing(network)  # type: ignore[arg-type]
        made.match = self.match
        return made
