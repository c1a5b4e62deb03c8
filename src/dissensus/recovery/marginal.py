"""The same for every item: how common the labels are. What everything else has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._relation import Floats
from ._base import Kept, Recovery, RecoveryMethod, Shown, Views

__all__ = ["Marginal"]


class Constant(Recovery):
    """One distribution for all items."""

    def __init__(self, share: Floats) -> None:
        self.share = share  # (class)

    def members(self, views: Views) -> Floats:
        return np.broadcast_to(self.share, (1, len(views), len(self.share)))

    def kept(self) -> Kept:
        return Kept({}, {"share": self.share})


@dataclass(frozen=True, kw_only=True)
class Marginal(RecoveryMethod):
    """The shares of the labels, the same for every item."""

    def learn(self, views: Views, shown: Shown) -> Constant:
        return Constant(np.bincount(shown.label, minlength=shown.n_classes) / len(shown.label))

    def restore(self, kept: Kept) -> Constant:
        return Constant(kept.arrays["share"])
