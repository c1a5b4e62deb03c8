"""Every annotator reports the truth through a confusion matrix, learned with the classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval
from torch import Tensor

from ..nn.batches import Batch
from ...params import Positive
from .confusion import AnnotatorMatrices, trusting
from .base import BuildParts, CrowdModel, Method

Trust = Annotated[float, Interval(gt=0, lt=1)]


class ConfusionModel(CrowdModel):
    """A classifier and a confusion matrix for every annotator."""

    settings: ConfusionMethod

    def __init__(self, context: BuildParts, settings: ConfusionMethod) -> None:
        super().__init__(context, settings)
        start = trusting(settings.trust, self.n_classes)
        self.matrices = AnnotatorMatrices(start, self.n_annotators)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.matrices(annotator).log_softmax(dim=-1)

    def penalty(self, annotator: Tensor) -> Tensor:
        return self.gaussian_prior(self.matrices.own(annotator), annotator, self.settings.spread)


class JointConfusionModel(ConfusionModel):
    """The same, of all labels on an item together."""

    joint = True

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        return -self.log_together(log_truth, vector, batch).sum() / len(batch.label)


@dataclass(frozen=True, kw_only=True)
class ConfusionMethod(Method):
    """What methods with a confusion matrix per annotator have in common.

    Parameters
    ----------
    trust
        How often every annotator is right at the start.
    spread
        How far annotators may differ from what they share, as a standard deviation of logits;
        `None` for as far as the labels take them.
    """

    trust: Trust = 0.6
    spread: Positive | None = 2.0


@dataclass(frozen=True, kw_only=True)
class ConfusionLayer(ConfusionMethod):
    """One confusion matrix per annotator on top of the classifier.

    Every annotator reports the truth through a confusion matrix, learned with the classifier.

        P(j says l of x) = Σ_k p_k(x) confusion[j, k, l]

    By default it learns from the labels of an item together, by gradients of the likelihood that EM
    climbs in `raykar`:

        loss = −(1/annotations) Σ_i log Σ_k p_k(x_i) Π_j confusion[j, k, label of j on i]

    With `joint=False` it learns from every label on its own. Called coupled cross-entropy by those
    who add something to it: trace-reg, geo-crowdnet-f and geo-crowdnet-w are that with one more
    term.

    When it fails: With few labels per annotator a K × K matrix is mostly its prior, and
    `global-noise` is as good. Annotators who err on the same items are not described.

    Parameters
    ----------
    joint
        Whether to learn from the labels of an item together, or from every label on its own.
    """

    spread: Positive | None = 1.0
    joint: bool = True

    def build(self, context: BuildParts) -> ConfusionModel:
        return (JointConfusionModel if self.joint else ConfusionModel)(context, self)
