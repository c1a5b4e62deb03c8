"""Heads over one encoder, each of which looks at the words or patches in its own way.

SeedBERT hopes that other starts lead to attention on other parts of the input. Here that is said
outright: every head has its own query over the places of an item, and `diverse` rewards heads for
looking elsewhere. What each looks at is there to be seen (`Recovery.attention`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .._relation import Floats
from ..params import Count, NonNegative, Positive
from ._base import Kept, RecoveryMethod, Shown, Views
from ._networks import Networks, Share, enough_epochs, labelled_once

__all__ = ["AttentionHeads"]


class Looking(Networks):
    """Heads that look at places."""

    def attention(self, views: Views) -> Floats:
        """Return what every member looks at: (member, item, place)."""
        from ._nets.pools import Pools

        assert isinstance(self.network, Pools)
        return self.network.attention(views)


@dataclass(frozen=True, kw_only=True)
class AttentionHeads(RecoveryMethod):
    """Heads over one encoder, each with its own attention.

    Parameters
    ----------
    n
        How many heads; each holds out another part of the items to choose its epoch.
    hidden
        Width of the hidden layer.
    dropout
        Share of the pooled vector and of the hidden layer that is left out in every step.
    diverse
        Weight of looking elsewhere than the other heads.
    epochs
        How often every item is seen.
    steps
        Fewest steps: few items are seen more often.
    patience
        Epochs in which no head foresees better, after which training ends.
    batch
        Items per step.
    lr
        Learning rate.
    """

    needs: ClassVar[tuple[str, ...]] = ("places",)

    n: Count = 5
    hidden: Count = 64
    dropout: Share = 0.3
    diverse: NonNegative = 0.0
    epochs: Count = 12
    steps: Count = 300
    patience: Count = 4
    batch: Count = 64
    lr: Positive = 1e-3

    def learn(self, views: Views, shown: Shown) -> Looking:
        from ._nets.members import taught
        from ._nets.pools import Pools
        from ._nets.sample_weights import folded

        assert views.positions is not None
        network = Pools(
            self.n, views.positions.values.shape[2], shown.n_classes, hidden=self.hidden,
            dropout=self.dropout, diverse=self.diverse, seed=shown.seed,
        )  # fmt: skip
        x = network.see(views)
        epochs = enough_epochs(self.epochs, self.steps, len(views), self.batch)
        taught(
            network,
            x,
            labelled_once(shown.label, shown.n_classes),
            folded(self.n, len(views), shown.seed),
            seed=shown.seed,
            progress=shown.progress,
            epochs=epochs,
            patience=-(-self.patience * epochs // self.epochs),
            batch=self.batch,
            lr=self.lr,
        )
        return Looking(network, network.left_out(x))

    def restore(self, kept: Kept) -> Looking:
        from ._nets.pools import Pools

        return Looking(Pools(**kept.notes).load(kept.arrays))
