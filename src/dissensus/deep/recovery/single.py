"""One network; the recovered distribution is its softmax."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..nn.features import Features
from .heads import Fraction, HeadMethod, Networks
from .members import shared_split
from .method import FitInputs


@dataclass(frozen=True, kw_only=True)
class Single(HeadMethod):
    """The softmax of one network.

    One network; the recovered distribution is its softmax.

    The reference for all others. A tenth of the items is the validation split, which may also set
    the temperature; labels may be smoothed. None of this can know how people spread: it corrects a
    network that is overconfident about the majority.

        p(x) = softmax(logits(x) / temperature)

    When it fails: It learns the majority, whose probability is steeper than the share of
    annotators, and is overconfident where the majority is clear to it.

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
        soft = np.eye(context.n_classes) if context.soft_labels is None else context.soft_labels
        soft = (1 - self.smoothing) * soft + self.smoothing / context.n_classes
        model = self._train(network, features, context, weight, soft_labels=soft)
        if self.temperature and context.soft_labels is None:
            model.calibrate(context.label)
        return model
