"""GeoCrowdNet (Ibrahim et al. 2023): coupled cross-entropy, and a volume that should be large.

    F   loss − weight · log det(PᵀP),   P = p(x) of the batch: (item, class)
    W   loss − weight · log det(AᵀA),   A[(j, l), k] = confusion[j, k, l]

The first volume is largest when every class has items that the classifier is sure of, the second
when every class has an annotator who is nearly an expert on it. Either identifies the truth.

When it fails: Where inputs do not determine the class: F makes the classifier sure all the same.
W needs an annotator who is nearly an expert on every class.

    S. Ibrahim, T. Nguyen, X. Fu. Deep learning from crowdsourced labels: coupled cross-entropy
    minimization, identifiability, and regularization. ICLR 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..nn.batches import Batch
from ...params import NonNegative
from .confusion_layers import ConfusionMethod, ConfusionModel

_RIDGE = 1e-6  # a classifier that says the same of all items spans nothing
_MOST = 100.0


class GeoCrowdnetFModel(ConfusionModel):
    """Confusion matrices under a classifier of large volume."""

    settings: GeoCrowdnetF

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        loss = super().crowd_loss(log_truth, vector, batch)
        return loss - self.settings.weight * log_volume(log_truth.exp())


class GeoCrowdnetWModel(ConfusionModel):
    """Confusion matrices of large volume."""

    settings: GeoCrowdnetW

    def penalty(self, annotator: Tensor) -> Tensor:
        here = torch.unique(annotator)  # those of the batch alone: a step stays cheap
        confusion = self.matrices(here).softmax(dim=-1)  # (annotator, true, given)
        stacked = confusion.swapaxes(1, 2).reshape(-1, self.n_classes)  # (annotator, given; true)
        scale = (self.n_annotators / len(here)) ** 0.5
        return super().penalty(annotator) - self.settings.weight * log_volume(scale * stacked)


def log_volume(matrix: Tensor) -> Tensor:
    """Return log det(MᵀM + ridge) of a matrix (row, class); zero where that is beyond measure."""
    gram = matrix.T @ matrix
    volume = torch.logdet(gram + _RIDGE * torch.eye(len(gram), dtype=gram.dtype))
    if not bool(torch.isfinite(volume)) or float(volume.detach().abs()) > _MOST:
        return matrix.new_zeros(())
    return volume


@dataclass(frozen=True, kw_only=True)
class GeoCrowdnetF(ConfusionMethod):
    """Confusion matrices, and predictions that spread over the classes.

    Parameters
    ----------
    weight
        What a log-volume of one is worth.
    """

    model = GeoCrowdnetFModel

    weight: NonNegative = 0.001


@dataclass(frozen=True, kw_only=True)
class GeoCrowdnetW(ConfusionMethod):
    """Confusion matrices that distinguish the classes.

    Parameters
    ----------
    weight
        What a log-volume of one is worth.
    """

    model = GeoCrowdnetWModel

    weight: NonNegative = 0.001
