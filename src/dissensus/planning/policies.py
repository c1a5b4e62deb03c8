"""ActiveLab: the items on which a classifier and the annotators are least certain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..base.arrays import Floats, Integers
from ._posterior_state import PosteriorState
from .policy import ItemPolicy


@dataclass(frozen=True, kw_only=True)
class ActiveLab(ItemPolicy):
    """The items on which a classifier and the annotators are least certain.

    ActiveLab: the items on which a classifier and the annotators are least certain.

    Needs the probabilities of a classifier. The score is that of
    `dissensus.quality.activelab`, and the lowest comes first. Every pending label moves a
    score half of the way towards one. Annotators are drawn at random.

        score[i] = (total[i] * consensus_quality[i] + mean / n_classes) / (total[i] + mean)

    When it fails: It needs a classifier; one that is sure and wrong hides its errors.

        H. W. Goh, J. Mueller. ActiveLab: active learning with re-labeling by multiple annotators.
        2023.
        arXiv:2301.11856
    """

    needs_probabilities: ClassVar[bool] = True

    def utility(
        self, state: PosteriorState, pending: Integers, remaining_entropy: Floats
    ) -> Floats:
        from ..quality.activelab import activelab

        assert state.probabilities is not None  # `plan` checks it
        return (1 - activelab(state.annotations, state.probabilities)) * np.power(0.5, pending)
