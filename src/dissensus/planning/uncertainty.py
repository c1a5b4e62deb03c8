"""Uncertainty: the items whose truth is least known, anybody who has not seen them.

An item is worth the entropy of its posterior; who is asked is drawn. Where several labels are
planned for one item, the entropy is what is expected after the ones before.

    D. D. Lewis, W. A. Gale. A sequential algorithm for training text classifiers. SIGIR, 1994.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._relation import Floats, Integers
from ._posterior_state import PosteriorState
from .policy import ItemPolicy

__all__ = ["Uncertainty"]


@dataclass(frozen=True, kw_only=True)
class Uncertainty(ItemPolicy):
    """The items whose truth is least known, anybody."""

    def utility(
        self, state: PosteriorState, pending: Integers, remaining_entropy: Floats
    ) -> Floats:
        return remaining_entropy
