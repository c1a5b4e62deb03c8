"""The label marginal, the same for every item: the baseline that every method has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...base.arrays import Floats
from .method import FitInputs, Recovery, RecoveryMethod, State

if TYPE_CHECKING:
    from ..nn.features import Features


class Constant(Recovery):
    """One distribution for all items."""

    def __init__(self, marginal: Floats, n_items: int = 0) -> None:
        self.marginal = marginal  # (class)
        self.held_out_proba = np.broadcast_to(marginal, (n_items, len(marginal)))

    def members(self, features: Features) -> Floats:
        return np.broadcast_to(self.marginal, (1, len(features), len(self.marginal)))

    def state(self) -> State:
        return State({}, {"marginal": self.marginal})


@dataclass(frozen=True, kw_only=True)
class Marginal(RecoveryMethod):
    """The label marginal, the same for every item.

    The label marginal, the same for every item: the baseline that every method has to beat.

        p(x) = shares of the labels of all items

    When it fails: It never distinguishes items; whatever does worse is misleading.
    """

    needs: ClassVar[tuple[str, ...]] = ()

    def _fit(self, features: Features, context: FitInputs) -> Constant:
        count = np.bincount(context.label, minlength=context.n_classes)
        return Constant(count / count.sum(), len(features))

    def restore(self, state: State) -> Constant:
        return Constant(state.arrays["marginal"])
