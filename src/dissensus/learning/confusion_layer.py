"""Every annotator reports the truth through a confusion matrix, learned with the classifier.

    P(j says l of x) = Σ_k p_k(x) confusion[j, k, l]

Called coupled cross-entropy by those who add something to it: trace-reg, geo-crowdnet-f and
geo-crowdnet-w are this model with one more term in the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval
from torch import Tensor

from ..params import Positive
from ._base import Crowd, CrowdModel, Method
from ._confusion import AnnotatorMatrices, trusting

__all__ = ["Chance", "ConfusionLayer", "ConfusionLayerModel"]

Chance = Annotated[float, Interval(gt=0, lt=1)]


class ConfusionLayerModel(CrowdModel):
    """A classifier and a confusion matrix for every annotator."""

    def __init__(self, crowd: Crowd, settings: ConfusionLayer) -> None:
        super().__init__(crowd, settings)
        start = trusting(settings.trust, self.n_classes)
        self.matrices = AnnotatorMatrices(start, self.n_annotators, settings.spread)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.matrices(annotator).log_softmax(dim=-1)

    def penalty(self, annotator: Tensor) -> Tensor:
        return self.over_all(self.matrices.surprise(annotator), annotator) / self.n_annotations


@dataclass(frozen=True, kw_only=True)
class ConfusionLayer(Method):
    """One confusion matrix per annotator on top of the classifier.

    Parameters
    ----------
    trust
        How often every annotator is right at the start.
    spread
        How far annotators may differ from what they share, as a standard deviation of logits;
        `None` for as far as the labels take them.
    """

    trust: Chance = 0.6
    spread: Positive | None = 2.0

    def build(self, crowd: Crowd) -> ConfusionLayerModel:
        return ConfusionLayerModel(crowd, self)
