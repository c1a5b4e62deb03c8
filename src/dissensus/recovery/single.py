"""One network; the recovered distribution is its softmax.

The reference for everything else. A tenth of the items tells it when to stop, and may also set its
temperature; labels may be smoothed, (1 - s) for the label and s spread over all classes. None of
these can know how people spread: what they mend is a network that is too sure of the majority.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._base import Shown, Views
from ._flattening import likeliest_temperature
from ._networks import Networks, OnVectors, Share

__all__ = ["Single"]


@dataclass(frozen=True, kw_only=True)
class Single(OnVectors):
    """The softmax of one network.

    Parameters
    ----------
    held_out
        Share of the items that is held out to choose the epoch.
    temperature
        Divide logits by what makes the labels of these items likeliest.
    smoothing
        Share of every label that is spread over all classes.
    """

    held_out: Share = 0.1
    temperature: bool = False
    smoothing: Share = 0.0

    def learn(self, views: Views, shown: Shown) -> Networks:
        from ._nets.sample_weights import alike

        share = alike(1, len(views), self.held_out, shown.seed)
        found = self.heads(views, shown, share, smoothing=self.smoothing)
        if self.temperature and found.left_out is not None:
            held = np.flatnonzero(~np.isnan(found.left_out[:, 0]))
            if len(held):
                found.temperature = likeliest_temperature(found.left_out[held], shown.label[held])
        return found
