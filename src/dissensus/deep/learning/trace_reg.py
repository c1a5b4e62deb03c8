"""Tanno et al. (2019): of all confusion matrices that explain the labels, those of least trace."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ...params import NonNegative
from .confusion_layers import ConfusionMethod, ConfusionModel


class TraceRegModel(ConfusionModel):
    """Confusion matrices whose trace costs something."""

    settings: TraceReg

    def penalty(self, annotator: Tensor) -> Tensor:
        trace = self.matrices(annotator).softmax(dim=-1).diagonal(dim1=1, dim2=2).sum(dim=1)
        mean = self.over_all(trace, annotator) / self.n_annotators
        return super().penalty(annotator) + self.settings.weight * mean


@dataclass(frozen=True, kw_only=True)
class TraceReg(ConfusionMethod):
    """Confusion matrices of least trace.

    Tanno et al. (2019): of all confusion matrices that explain the labels, those of least trace.

        loss = coupled cross-entropy + weight · mean_j trace(confusion[j])

    If annotators are right more often than not, on average, the matrices of least trace among those
    that explain the noisy labels are the true ones. Left alone, the network could take the noise
    into the classifier and leave the matrices at the identity.

    When it fails: Where annotators are wrong more often than right, the smallest trace is the wrong
    solution. A large `weight` blames good annotators for what the classifier cannot learn.

        R. Tanno et al. Learning from noisy labels by regularized estimation of annotator confusion.
        CVPR 2019. doi:10.1109/CVPR.2019.01150

    Parameters
    ----------
    weight
        What a trace of one costs.
    """

    model = TraceRegModel

    weight: NonNegative = 0.01
