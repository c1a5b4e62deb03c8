"""Deng et al. (2023): embeddings of annotators, and of what else they have said.

    e_a = a row per annotator,   e_n = mean over the annotator's other labels of a row per class
    α = (W_s s) · (W_a e_a),   β = (W_s s) · (W_n e_n)
    P(k says · of x) = softmax(head(LayerNorm(s + α e_a + β e_n)))

with s the vector of the item (here after one linear layer, for the encoder stands fast). With
`annotations` alone a new annotator needs a few labels and no training.

    N. Deng, X. F. Zhang, S. Liu, W. Wu, L. Wang, R. Mihalcea. You are what you annotate: towards
    better models through annotator representations. Findings of EMNLP 2023. arXiv:2305.14663
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..annotations import Annotations
from ..errors import MethodError
from ..nn.batches import Batch
from ..nn.tables import Table
from ..params import Count
from ._vector_net import NetworkMethod, Sizes, VectorNet

__all__ = ["AnnotatorEmbedding", "AnnotatorEmbeddingNet"]

_START = 0.02


class AnnotatorEmbeddingNet(VectorNet):
    """Items moved by embeddings of who looks at them."""

    count: Tensor  # (annotator, class): labels that are known

    def __init__(self, sizes: Sizes, method: AnnotatorEmbedding) -> None:
        super().__init__(sizes)
        width = method.hidden
        self.enter = nn.Sequential(nn.Dropout(method.dropout), nn.Linear(sizes.features, width))
        self.sight = nn.Linear(width, method.width, bias=False)
        self.mine = self.told = None
        if method.annotator:
            self.mine = Table(_START * torch.randn(sizes.n_annotators, width))
            self.weigh_mine = nn.Linear(width, method.width, bias=False)
        if method.annotations:
            self.told = nn.Parameter(_START * torch.randn(sizes.n_classes, width))
            self.weigh_told = nn.Linear(width, method.width, bias=False)
        self.leave = nn.Sequential(
            nn.LayerNorm(width), nn.ReLU(), nn.Dropout(method.dropout),
            nn.Linear(width, sizes.n_classes),
        )  # fmt: skip
        self.register_buffer("count", torch.zeros(sizes.n_annotators, sizes.n_classes))

    def start(self, annotations: Annotations) -> None:
        cells = annotations.annotator.astype(np.int64) * annotations.n_classes + annotations.label
        counts = np.bincount(cells, minlength=annotations.n_annotators * annotations.n_classes)
        self.count.copy_(torch.from_numpy(counts.reshape(-1, annotations.n_classes)))

    def log_given(
        self, x: Tensor, row: Tensor, annotator: Tensor, without: Tensor | None = None
    ) -> Tensor:
        s = self.enter(x)
        sight = self.sight(s)[row]
        moved = s[row]
        if self.mine is not None:
            mine = self.mine(annotator)
            moved = moved + (sight * self.weigh_mine(mine)).sum(dim=1, keepdim=True) * mine
        if self.told is not None:
            count = self.count[annotator]
            if without is not None:  # the label that is to be foreseen tells nothing of itself
                count = count - nn.functional.one_hot(without, count.shape[1])
            share = count / count.sum(dim=1, keepdim=True).clamp(min=1)
            told = share @ self.told
            moved = moved + (sight * self.weigh_told(told)).sum(dim=1, keepdim=True) * told
        return self.leave(moved).log_softmax(dim=1)

    def log_batch(self, batch: Batch) -> Tensor:
        without = batch.label if self.training else None
        return self.log_given(self.scaled(batch.x), batch.row, batch.annotator, without)


@dataclass(frozen=True, kw_only=True)
class AnnotatorEmbedding(NetworkMethod):
    """Embeddings of annotators and of their other labels, weighed by the item.

    Parameters
    ----------
    annotator
        Whether annotators have embeddings of their own.
    annotations
        Whether their other labels are embedded.
    width
        Of the space in which embeddings are weighed.
    """

    annotator: bool = True
    annotations: bool = True
    width: Count = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.annotator or self.annotations):
            raise MethodError("annotator = annotations = False, but one of them has to be embedded")

    def build(self, sizes: Sizes) -> AnnotatorEmbeddingNet:
        return AnnotatorEmbeddingNet(sizes, self)
