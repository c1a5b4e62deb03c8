"""Chu, Ma and Wang (2021), CoNAL: some noise is common to all, some is an annotator's own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from ..nn.tables import Table
from ...params import Count, NonNegative, Positive
from .confusion import squares, trusting
from .base import BuildParts, CrowdModel, Method, PairBatch
from .confusion_layers import Trust


class ConalModel(CrowdModel):
    """A classifier, a common matrix, and a matrix for every annotator."""

    settings: Conal

    def __init__(self, context: BuildParts, settings: Conal) -> None:
        super().__init__(context, settings)
        start = 2 * torch.eye(self.n_classes)
        if settings.trust is not None:
            start = trusting(settings.trust, self.n_classes)
        self.common = nn.Parameter(start.clone())  # (true, given)
        self.own = Table(torch.zeros(self.n_annotators, *start.shape))  # W_j − start
        self.register_buffer("start", start)
        self.item = nn.Sequential(  # two linear maps, nothing between them: as published
            nn.Linear(self.classifier.width, 128), nn.Linear(128, settings.width)
        )
        self.annotator = Table(torch.randn(self.n_annotators, settings.width))

    def share(self, annotator: Tensor, vector: Tensor) -> Tensor:
        """Return ω, how far an annotation goes the common way: (annotation)."""
        u = normalize(self.annotator(annotator), dim=1)
        v = normalize(self.item(vector), dim=1)
        return torch.sigmoid((u * v).sum(dim=1))

    def matrices(self, annotator: Tensor, vector: Tensor) -> Tensor:
        """Return the mixed matrices: (annotation, true, given)."""
        common = self.share(annotator, vector)[:, None, None]
        return common * self.common + (1 - common) * (self.start + self.own(annotator))

    def log_given(self, pairs: PairBatch) -> Tensor:
        mixed = self.matrices(pairs.annotator, pairs.vector)
        return torch.einsum("nk,nkl->nl", pairs.log_truth.exp(), mixed).log_softmax(dim=-1)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.matrices(annotator, vector).log_softmax(dim=-1)

    def penalty(self, annotator: Tensor) -> Tensor:
        apart = self.start + self.own(annotator) - self.common
        gain = self.over_all((squares(apart) + 1e-12).sqrt(), annotator)
        prior = self.gaussian_prior(apart, annotator, self.settings.spread)
        return prior - self.settings.scale * gain


@dataclass(frozen=True, kw_only=True)
class Conal(Method):
    """A common confusion and one of each annotator's own, mixed by item and annotator.

    Chu, Ma and Wang (2021), CoNAL: some noise is common to all, some is an annotator's own.

        ω[i, j] = sigmoid(u_j · v_i)                            u_j and v_i of length one
        P(j says · of x_i) = softmax(ω p W_common + (1 − ω) p W_j)

    Whether an error on item i by annotator j is of the common kind depends on both, through an
    embedding of each. Both have length one, so ω stays within .27 and .73. The loss rewards
    matrices that differ from the common one with `scale` · Σ_j ‖W_j − W_common‖; it has no lower
    bound, so the scale must be small.

    When it fails: With few labels per annotator the embedding of pairs is not learned, and it is a
    crowd layer with a common matrix. A large `scale` makes the loss fall without bound.

        Z. Chu, J. Ma, H. Wang. Learning from crowds by modeling common confusions. AAAI 2021.

    Parameters
    ----------
    scale
        What a distance of one from the common matrix is worth.
    width
        Length of the embeddings of items and annotators.
    trust
        How often annotators are right at the start where the classifier is sure; `None` begins
        with twice the identity, as the paper does.
    spread
        How far annotators may differ from the common matrix, as a standard deviation; `None` for
        as far as the labels take them, as published.
    """

    model = ConalModel

    scale: NonNegative = 1e-5
    width: Count = 20
    trust: Trust | None = 0.6
    spread: Positive | None = 2.0
