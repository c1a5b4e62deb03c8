"""Rodrigues and Pereira (2018): a layer of each annotator's own behind the classifier.

The classifier's probabilities p become new logits, and these the probabilities of the labels:

    mw    P(j says · of x) = softmax(p W_j)          a matrix
    vw    softmax(w_j * p)                           a weight for every class
    vw-b  softmax(w_j * p + b_j)                     and a bias
    vb    softmax(p + b_j)                           a bias for every class
    sw    softmax(s_j p)                             one weight

Since p is at most one, an identity matrix makes the annotator right with probability
e / (e + K − 1) only, .28 for eight classes. So matrices and weights start at the size that makes a
certain classifier right with probability `trust`; the paper starts at one (`trust=None`). The paper
has no prior on the layer; ours pulls each annotator towards what all share, which is learned too,
or the layer would memorize the labels.

When it fails: Nothing ties the classifier to the truth but the start: with a strong layer,
classifier and matrices may exchange two classes or share the noise. Annotators with few labels
are near what all share.

    F. Rodrigues, F. Pereira. Deep learning from crowds. AAAI 2018.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from ..nn.tables import Table
from ...params import Positive
from .confusion import AnnotatorMatrices, trusting
from .base import BuildParts, CrowdModel, Method, PairBatch
from .confusion_layers import Trust


class LayerModel(CrowdModel):
    """A classifier and a layer that turns its probabilities into logits of labels."""

    settings: CrowdLayer

    def __init__(self, context: BuildParts, settings: CrowdLayer) -> None:
        super().__init__(context, settings)
        self.size = 1.0
        if settings.trust is not None:
            self.size = float(trusting(settings.trust, self.n_classes)[0, 0])

    @abstractmethod
    def logits(self, p: Tensor, annotator: Tensor) -> Tensor:
        """Return logits of labels, from probabilities: (annotation, …, given)."""

    @abstractmethod
    def own(self, annotator: Tensor) -> Tensor:
        """Return what is theirs alone, as the prior sees it: (annotation, …)."""

    def log_given(self, pairs: PairBatch) -> Tensor:
        return self.logits(pairs.log_truth.exp(), pairs.annotator).log_softmax(dim=-1)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        sure = torch.eye(self.n_classes, dtype=self.count.dtype, device=self.count.device)
        each = [self.logits(one.expand(len(annotator), -1), annotator) for one in sure]
        return torch.stack(each, dim=1).log_softmax(dim=-1)

    def penalty(self, annotator: Tensor) -> Tensor:
        return self.gaussian_prior(self.own(annotator), annotator, self.settings.spread)


class MatrixModel(LayerModel):
    """A matrix for every annotator."""

    def __init__(self, context: BuildParts, settings: CrowdLayer) -> None:
        super().__init__(context, settings)
        start = self.size * torch.eye(self.n_classes)
        self.matrices = AnnotatorMatrices(start, self.n_annotators)

    def logits(self, p: Tensor, annotator: Tensor) -> Tensor:
        return torch.einsum("nk,nkl->nl", p, self.matrices(annotator))

    def own(self, annotator: Tensor) -> Tensor:
        return self.matrices.own(annotator)


class WeightModel(LayerModel):
    """A weight of every annotator for every class, or one for all (`scalar`)."""

    scalar = False

    def __init__(self, context: BuildParts, settings: CrowdLayer) -> None:
        super().__init__(context, settings)
        width = 1 if self.scalar else self.n_classes
        self.weight_common = nn.Parameter(torch.full((width,), self.size))
        self.weight_own = Table(torch.zeros(self.n_annotators, width))

    def logits(self, p: Tensor, annotator: Tensor) -> Tensor:
        return (self.weight_common + self.weight_own(annotator)) * p

    def own(self, annotator: Tensor) -> Tensor:
        return self.weight_own(annotator)


class ScaleModel(WeightModel):
    """One weight for every annotator."""

    scalar = True


class WeightBiasModel(WeightModel):
    """A weight and a bias of every annotator for every class."""

    def __init__(self, context: BuildParts, settings: CrowdLayer) -> None:
        super().__init__(context, settings)
        self.bias = Table(torch.zeros(self.n_annotators, self.n_classes))

    def logits(self, p: Tensor, annotator: Tensor) -> Tensor:
        return super().logits(p, annotator) + self.bias(annotator)

    def own(self, annotator: Tensor) -> Tensor:
        return torch.cat([self.weight_own(annotator), self.bias(annotator)], dim=1)


class BiasModel(LayerModel):
    """A bias of every annotator for every class."""

    def __init__(self, context: BuildParts, settings: CrowdLayer) -> None:
        super().__init__(context, settings)
        self.bias = Table(torch.zeros(self.n_annotators, self.n_classes))

    def logits(self, p: Tensor, annotator: Tensor) -> Tensor:
        return self.size * p + self.bias(annotator)

    def own(self, annotator: Tensor) -> Tensor:
        return self.bias(annotator)


@dataclass(frozen=True, kw_only=True)
class CrowdLayer(Method):
    """A matrix of each annotator's own behind the classifier (mw).

    Parameters
    ----------
    trust
        How often annotators are right at the start where the classifier is sure; `None` begins
        as the paper does.
    spread
        How far annotators may differ from what they share, as a standard deviation; `None` for as
        far as the labels take them.
    """

    model: ClassVar[type[CrowdModel]] = MatrixModel

    trust: Trust | None = 0.6
    spread: Positive | None = 2.0


@dataclass(frozen=True, kw_only=True)
class CrowdLayerVw(CrowdLayer):
    """A weight of each annotator's own for every class."""

    model = WeightModel


@dataclass(frozen=True, kw_only=True)
class CrowdLayerVwB(CrowdLayer):
    """A weight and a bias of each annotator's own for every class."""

    model = WeightBiasModel


@dataclass(frozen=True, kw_only=True)
class CrowdLayerVb(CrowdLayer):
    """A bias of each annotator's own for every class."""

    model = BiasModel


@dataclass(frozen=True, kw_only=True)
class CrowdLayerSw(CrowdLayer):
    """One weight of each annotator's own."""

    model = ScaleModel
