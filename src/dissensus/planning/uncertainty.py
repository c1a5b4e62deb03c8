"""Uncertainty sampling: the items with the highest posterior entropy, and random annotators."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.arrays import Floats, Integers
from ._posterior_state import PosteriorState
from .policy import ItemPolicy


@dataclass(frozen=True, kw_only=True)
class Uncertainty(ItemPolicy):
    """The items with the highest posterior entropy.

    Uncertainty sampling: the items with the highest posterior entropy, and random annotators.

    With pending labels, the entropy is the expected one after these.

        utility[i] = entropy(posterior[i])

    When it fails: Items that are ambiguous for everybody stay uncertain and are asked again and
    again; who answers is left to the draw.

        D. D. Lewis, W. A. Gale. A sequential algorithm for training text classifiers. SIGIR, 1994.
    """

    def utility(
        self, state: PosteriorState, pending: Integers, remaining_entropy: Floats
    ) -> Floats:
        return remaining_entropy
