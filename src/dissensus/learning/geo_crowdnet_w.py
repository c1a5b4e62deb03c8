"""GeoCrowdNet(W): the annotators together should distinguish all classes.

    loss = coupled cross-entropy − weight · log det(AᵀA),   A[(j, l), k] = confusion[j, k, l]

The volume is largest when every class has an annotator who is nearly an expert on it, which makes
the truth identifiable.

    S. Ibrahim, T. Nguyen, X. Fu. Deep learning from crowdsourced labels: coupled cross-entropy
    minimization, identifiability, and regularization. ICLR 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..params import NonNegative
from ._volume import log_volume
from .base import FitContext
from .confusion_layer import ConfusionMethod, ConfusionModel


class GeoCrowdnetWModel(ConfusionModel):
    """Confusion matrices of large volume."""

    def __init__(self, context: FitContext, settings: GeoCrowdnetW) -> None:
        super().__init__(context, settings)
        self.worth = settings.weight

    def penalty(self, annotator: Tensor) -> Tensor:
        here = torch.unique(annotator)  # those of the batch alone: a step stays cheap
        confusion = self.matrices(here).softmax(dim=-1)  # (annotator, true, given)
        stacked = confusion.swapaxes(1, 2).reshape(-1, self.n_classes)  # (annotator, given; true)
        scale = (self.n_annotators / len(here)) ** 0.5
        return super().penalty(annotator) - self.worth * log_volume(scale * stacked)


@dataclass(frozen=True, kw_only=True)
class GeoCrowdnetW(ConfusionMethod):
    """Confusion matrices that distinguish the classes.

    Parameters
    ----------
    weight
        What a log-volume of one is worth.
    """

    weight: NonNegative = 0.001

    def build(self, context: FitContext) -> GeoCrowdnetWModel:
        return GeoCrowdnetWModel(context, self)
