"""One confusion matrix for all annotators (Goldberger and Ben-Reuven, 2017)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from .confusion import trusting
from .base import BuildParts, CrowdModel, Method
from .confusion_layers import Trust


class GlobalNoiseModel(CrowdModel):
    """A classifier and one confusion matrix."""

    def __init__(self, context: BuildParts, settings: GlobalNoise) -> None:
        super().__init__(context, settings)
        self.logits = nn.Parameter(trusting(settings.trust, self.n_classes))  # (true, given)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.logits.log_softmax(dim=-1).expand(len(annotator), -1, -1)


@dataclass(frozen=True, kw_only=True)
class GlobalNoise(Method):
    """One confusion matrix for all annotators.

    One confusion matrix for all annotators (Goldberger and Ben-Reuven, 2017).

        P(any annotator says l of x) = Σ_k p_k(x) confusion[k, l]

    What annotators have in common, and nothing else: right where each gave few labels.

    When it fails: Where annotators differ much, since spammers and experts share one matrix.

        J. Goldberger, E. Ben-Reuven. Training deep neural networks using a noise adaptation layer.
        ICLR 2017.

    Parameters
    ----------
    trust
        How often the annotators are right at the start.
    """

    model = GlobalNoiseModel

    trust: Trust = 0.6
