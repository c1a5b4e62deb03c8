"""Random: the items with the fewest labels, and random annotators who have not labelled them."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.arrays import Floats, Integers
from ._posterior_state import PosteriorState
from .policy import ItemPolicy


@dataclass(frozen=True, kw_only=True)
class Random(ItemPolicy):
    """The items with the fewest labels.

    Random: the items with the fewest labels, and random annotators who have not labelled them.

    The baseline, and what most platforms do: every item gets equally many labels.

        utility[i] = -number of labels on i

    When it fails: It spends most labels on items that are already certain.

    Parameters
    ----------
    balanced
        Whether items with fewer labels come first; otherwise items are random.
    """

    balanced: bool = True

    def utility(
        self, state: PosteriorState, pending: Integers, remaining_entropy: Floats
    ) -> Floats:
        if not self.balanced:
            return 0.0 * remaining_entropy
        return -(state.annotations.labels_per_item + pending).astype(float)
