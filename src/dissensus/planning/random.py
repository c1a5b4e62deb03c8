"""Random: the items with the fewest labels, anybody who has not seen them.

What most platforms do, and the yardstick for everything else: every item gets equally many
labels. Which of several such items comes first, and who is asked, is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._relation import Floats, Integers
from ._posterior_state import PosteriorState
from .policy import ItemPolicy

__all__ = ["Random"]


@dataclass(frozen=True, kw_only=True)
class Random(ItemPolicy):
    """The items with the fewest labels, anybody.

    Parameters
    ----------
    balanced
        Whether items with fewer labels come first; otherwise any item may be next.
    """

    balanced: bool = True

    def utility(
        self, state: PosteriorState, pending: Integers, remaining_entropy: Floats
    ) -> Floats:
        if not self.balanced:
            return 0.0 * remaining_entropy
        return -(state.annotations.labels_per_item + pending).astype(float)
