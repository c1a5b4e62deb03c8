"""Settings that networks on vectors share, and how they are trained from them.

Torch is imported when something is learned, so that methods can be listed without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from annotated_types import Ge, Interval

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..params import Count, Positive
from ._base import Kept, Recovery, RecoveryMethod, Shown, Views

if TYPE_CHECKING:
    from torch import Tensor

    from ._nets.members import Members

__all__ = ["Networks", "OnVectors", "Share", "enough_epochs", "labelled_once"]

Share = Annotated[float, Interval(ge=0, lt=1)]
Width = Annotated[int, Ge(0)]


class Networks(Recovery):
    """Networks that were trained."""

    def __init__(self, network: Members, left_out: Floats | None = None) -> None:
        self.network = network
        self.left_out = left_out  # (item, class): of items learned from, by members that did not

    def members(self, views: Views) -> Floats:
        return self.network.believe(self.network.see(views))

    def kept(self) -> Kept:
        return Kept(self.network.shape, self.network.weights())


@dataclass(frozen=True, kw_only=True)
class OnVectors(RecoveryMethod):
    """Networks over one vector per item.

    Parameters
    ----------
    hidden
        Width of the hidden layer; 0 for none.
    dropout
        Share of the hidden layer that is left out in every step.
    input_dropout
        Share of the vectors that is left out in every step.
    epochs
        How often every item is seen. A member that holds items out ends at the epoch at which it
        foresees them best.
    steps
        Fewest steps: few items are seen more often.
    patience
        Epochs in which no member foresees better, after which training ends.
    batch
        Items per step.
    lr
        Learning rate.
    """

    hidden: Width = 128
    dropout: Share = 0.5
    input_dropout: Share = 0.3
    epochs: Count = 30
    steps: Count = 600
    patience: Count = 8
    batch: Count = 64
    lr: Positive = 1e-3

    def heads(
        self,
        views: Views,
        shown: Shown,
        share: Tensor,
        *,
        annotations: Annotations | None = None,
        strict: bool = False,
        smoothing: float = 0.0,
        seed: int | None = None,
    ) -> Networks:
        """Return heads that have learned, as many as there are rows of `share`."""
        from ._nets.heads import Heads
        from ._nets.members import taught

        assert views.vectors is not None
        seed = shown.seed if seed is None else seed
        width = int(np.prod(views.vectors.shape[1:]))
        network = Heads(
            len(share), width, shown.n_classes, hidden=self.hidden, dropout=self.dropout,
            input_dropout=self.input_dropout, strict=strict, seed=seed,
        )  # fmt: skip
        x = network.see(views)
        taught(
            network, x, annotations or labelled_once(shown.label, shown.n_classes), share, seed=seed,
            smoothing=smoothing, progress=shown.progress, **self.training(len(views)),
        )  # fmt: skip
        return Networks(network, network.left_out(x))

    def training(self, n_items: int) -> dict[str, Any]:
        """Return how to train."""
        epochs = enough_epochs(self.epochs, self.steps, n_items, self.batch)
        patience = -(-self.patience * epochs // self.epochs)  # as long where epochs are short
        return {"epochs": epochs, "batch": self.batch, "lr": self.lr, "patience": patience}

    def restore(self, kept: Kept) -> Recovery:
        from ._nets.heads import Heads

        return Networks(Heads(**kept.notes).load(kept.arrays))


def enough_epochs(epochs: int, steps: int, n_items: int, batch: int) -> int:
    """Return how many epochs make at least so many steps."""
    return max(epochs, -(-steps // -(-n_items // batch)))


def labelled_once(label: Integers, n_classes: int) -> Annotations:
    """Return one label per item as annotations."""
    nobody = np.zeros(len(label), dtype=np.int64)
    return Annotations.from_codes(
        np.arange(len(label)), nobody, label, items=len(label), annotators=1, classes=n_classes
    )
