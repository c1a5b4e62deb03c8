"""Weighted masks: a vote over pixels, in which masks close to the consensus weigh more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Floats
from ..params import Count, NonNegative
from ..consensus_base import ConsensusContext
from .masks import MaskMethod, Pixels, Soft

_LEAST = 1e-6  # weight of a mask


@dataclass(frozen=True, kw_only=True)
class WeightedMasks(MaskMethod):
    """A vote over pixels, weighted by intersection over union with the consensus.

    Weighted masks: a vote over pixels, in which masks close to the consensus weigh more.

    The soft mask is the weighted share of masks that hold a pixel; the consensus is where it
    exceeds one half. A mask weighs its intersection over union with the consensus, to a power,
    found for every image on its own: a mask that is far off hardly counts.

        soft[pixel] = Σ_a w[a] mask[a, pixel] / Σ_a w[a],   w[a] = IoU(mask[a], soft > ½)**power

    When it fails: Where most masks of an image share an error, such as a border drawn too wide, the
    consensus has it. With two masks per image it is close to their intersection or union.

    Parameters
    ----------
    power
        Power of the intersection over union; 0 is the plain vote.
    rounds
        Number of times that weights and consensus are computed.

    Examples
    --------
    >>> from dissensus.answers import Masks
    >>> masks = Masks.from_columns("aaa", "xyz", ["1 2 1", "1 3", "0 1 2 1"], size={"a": (2, 2)})
    >>> WeightedMasks().fit(masks).items["counts"].tolist()
    ['1 3']
    """

    power: NonNegative = 4.0
    rounds: Count = 10

    def soft(self, fit: ConsensusContext, pixels: Pixels) -> Soft:
        weight = np.ones(len(pixels.item))  # (answer)
        for _ in range(self.rounds):
            inside = self._share(pixels, weight)
            weight = pixels.iou(pixels.with_gold(inside) > 0.5) ** self.power + _LEAST
        return Soft(self._share(pixels, weight), {"weight": weight})

    def _share(self, pixels: Pixels, weight: Floats) -> Floats:
        """Return the share of the weight that is inside: (segment)."""
        total = np.bincount(pixels.item, weight, minlength=pixels.n_items)[pixels.segments.item]
        share = (pixels.on @ weight) / np.where(total > 0, total, 1.0)
        return np.clip(share, 0.0, 1.0)
