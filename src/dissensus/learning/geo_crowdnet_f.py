"""GeoCrowdNet(F): the classifier's answers should spread over all classes.

    loss = coupled cross-entropy − weight · log det(PᵀP),   P = p(x) of the batch: (item, class)

The volume is largest when every class has items that the classifier is sure of. That is what makes
the truth identifiable: some items of each class whose class is beyond doubt.

    S. Ibrahim, T. Nguyen, X. Fu. Deep learning from crowdsourced labels: coupled cross-entropy
    minimization, identifiability, and regularization. ICLR 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ..nn.batches import Batch
from ..params import NonNegative
from ._volume import log_volume
from .base import FitContext
from .confusion_layer import ConfusionMethod, ConfusionModel


class GeoCrowdnetFModel(ConfusionModel):
    """Confusion matrices under a classifier of large volume."""

    def __init__(self, context: FitContext, settings: GeoCrowdnetF) -> None:
        super().__init__(context, settings)
        self.worth = settings.weight

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        loss = super().crowd_loss(log_truth, vector, batch)
        return loss - self.worth * log_volume(log_truth.exp())


@dataclass(frozen=True, kw_only=True)
class GeoCrowdnetF(ConfusionMethod):
    """Confusion matrices, and predictions that spread over the classes.

    Parameters
    ----------
    weight
        What a log-volume of one is worth.
    """

    weight: NonNegative = 0.001

    def build(self, context: FitContext) -> GeoCrowdnetFModel:
        return GeoCrowdnetFModel(context, self)
