"""One network; the recovered distribution is its softmax.

The reference for all others. A tenth of the items is the validation split, which may also set the
temperature; labels may be smoothed. None of this can know how people spread: it corrects a network
that is overconfident about the majority.

    p(x) = softmax(logits(x) / temperature)

When it fails: It learns the majority, whose probability is steeper than the share of annotators,
and is overconfident where the majority is clear to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..calibration import fit_temperature
from ..nn.features import Features
from ._heads import Fraction, HeadMethod, Networks
from ._members import shared_split
from .method import FitInputs


@dataclass(frozen=True, kw_only=True)
class Single(HeadMethod):
    """The softmax of one network.

    Parameters
    ----------
    held_out
        Fraction of the items in the validation split.
    temperature
        Set the temperature by the validation split.
    smoothing
        Label smoothing.
    """

    held_out: Fraction = 0.1
    temperature: bool = False
    smoothing: Fraction = 0.0

    def _fit(self, features: Features, context: FitInputs) -> Networks:
        weight = shared_split(1, len(features), self.held_out, context.seed)
        network = self._heads(features, context, 1)
        model = self._train(network, features, context, weight, smoothing=self.smoothing)
        if self.temperature and model.held_out_proba is not None:
            held_out = np.flatnonzero(~np.isnan(model.held_out_proba[:, 0]))
            if len(held_out):
                model.temperature = fit_temperature(
                    model.held_out_proba[held_out], context.label[held_out]
                )
        return model
