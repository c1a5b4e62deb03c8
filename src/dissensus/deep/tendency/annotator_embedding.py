"""Deng et al. (2023): embeddings of annotators and of their other annotations."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...answers.annotations import Annotations
from ...errors import MethodError
from ..nn import Batch, Table
from ...params import Count
from .vector_networks import NetworkMethod, Sizes, VectorNet
from .own_majority import label_counts

_INIT_STD = 0.02


class AnnotatorEmbeddingNet(VectorNet):
    """A classifier of the item's vector plus embeddings of the annotator."""

    count: Tensor  # (annotator, class): training labels

    def __init__(self, sizes: Sizes, method: AnnotatorEmbedding) -> None:
        super().__init__(sizes, method)
        width = method.hidden
        self.item = nn.Sequential(nn.Dropout(method.dropout), nn.Linear(sizes.n_features, width))
        self.weigh_item = nn.Linear(width, method.width, bias=False)
        self.annotator = self.label = None
        if method.annotator:
            self.annotator = Table(_INIT_STD * torch.randn(sizes.n_annotators, width))
            self.weigh_annotator = nn.Linear(width, method.width, bias=False)
        if method.annotations:
            self.label = nn.Parameter(_INIT_STD * torch.randn(sizes.n_classes, width))
            self.weigh_label = nn.Linear(width, method.width, bias=False)
        self.head = nn.Sequential(
            nn.LayerNorm(width), nn.ReLU(), nn.Dropout(method.dropout),
            nn.Linear(width, sizes.n_classes),
        )  # fmt: skip
        self.register_buffer("count", torch.zeros(sizes.n_annotators, sizes.n_classes))

    def start(self, annotations: Annotations) -> None:
        self.count.copy_(torch.from_numpy(label_counts(annotations)))

    def log_given(
        self, x: Tensor, row: Tensor, annotator: Tensor, without: Tensor | None = None
    ) -> Tensor:
        item = self.item(x)
        weigh = self.weigh_item(item)[row]
        out = item[row]
        if self.annotator is not None:
            own = self.annotator(annotator)
            out = out + (weigh * self.weigh_annotator(own)).sum(dim=1, keepdim=True) * own
        if self.label is not None:
            count = self.count[annotator]
            if without is not None:  # leave out the label to predict
                count = count - nn.functional.one_hot(without, count.shape[1])
            labels = count / count.sum(dim=1, keepdim=True).clamp(min=1) @ self.label
            out = out + (weigh * self.weigh_label(labels)).sum(dim=1, keepdim=True) * labels
        return self.head(out).log_softmax(dim=1)

    def log_batch(self, batch: Batch) -> Tensor:
        without = batch.label if self.training else None
        return self.log_given(self.scaled(batch.x), batch.row, batch.annotator, without)


@dataclass(frozen=True, kw_only=True)
class AnnotatorEmbedding(NetworkMethod):
    """Embeddings of annotators and of their other labels, weighted by the item.

    Deng et al. (2023): embeddings of annotators and of their other annotations.

        e_a = a row per annotator,   e_n = mean over the annotator's other labels of a row per class
        α = (W_s s) · (W_a e_a),   β = (W_s s) · (W_n e_n)
        P(k says · of x) = softmax(head(LayerNorm(s + α e_a + β e_n)))

    with s the vector of the item, here after one linear layer, since the encoder is frozen. With
    `annotations` alone a new annotator needs a few labels and no training.

    When it fails: With few labels per annotator an embedding is close to its start. Embeddings of
    the other labels leak what the annotator gave to similar items, which a new annotator does not
    have.

        N. Deng, X. F. Zhang, S. Liu, W. Wu, L. Wang, R. Mihalcea. You are what you annotate:
        towards better models through annotator representations. Findings of EMNLP 2023.
        arXiv:2305.14663

    Parameters
    ----------
    annotator
        Whether annotators have embeddings.
    annotations
        Whether their other labels are embedded.
    width
        Width of the space in which embeddings are weighted.
    """

    network = AnnotatorEmbeddingNet

    annotator: bool = True
    annotations: bool = True
    width: Count = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.annotator or self.annotations):
            raise MethodError("annotator = annotations = False, but one of them must be embedded")
