"""ActiveLab: the items whose label a classifier and the annotators are least sure of, anybody.

Needs the probabilities of a classifier. The score is that of `dissensus.identification.activelab`,
and the lowest comes first. Labels that are planned already draw a score towards one, half of the
way with every label; who is asked is drawn.

    H. W. Goh, J. Mueller. ActiveLab: active learning with re-labeling by multiple annotators. 2023.
    arXiv:2301.11856
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._relation import Floats, Integers
from ._posterior_state import PosteriorState
from .policy import ItemPolicy

__all__ = ["ActiveLab"]


@dataclass(frozen=True, kw_only=True)
class ActiveLab(ItemPolicy):
    """The items that a classifier and the annotators are least sure of, anybody."""

    needs_probabilities: ClassVar[bool] = True

    def utility(
        self, state: PosteriorState, pending: Integers, remaining_entropy: Floats
    ) -> Floats:
        from ..identification.activelab import activelab

        assert state.probabilities is not None  # `plan` sees to it
        return (1 - activelab(state.annotations, state.probabilities)) * np.power(0.5, pending)
