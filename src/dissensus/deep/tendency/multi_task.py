"""Davani, Díaz and Prabhakaran (2022): one task per annotator on a shared hidden layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..nn.tables import Table
from .vector_networks import NetworkMethod, Sizes, VectorNet, hidden_layer


class MultiTaskNet(VectorNet):
    """A shared hidden layer and a head per annotator."""

    def __init__(self, sizes: Sizes, method: MultiTask) -> None:
        super().__init__(sizes, method)
        self.body = hidden_layer(sizes.n_features, method.hidden, method.dropout)
        start = torch.randn(sizes.n_annotators, sizes.n_classes, method.hidden + 1)
        self.heads = Table(start / method.hidden**0.5)  # the last column is the bias

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        head = self.heads(annotator)  # (pair, class, hidden + 1)
        hidden = self.body(x)[row]
        return (torch.einsum("nd,ncd->nc", hidden, head[:, :, :-1]) + head[:, :, -1]).log_softmax(1)


@dataclass(frozen=True, kw_only=True)
class MultiTask(NetworkMethod):
    """A head per annotator on a shared hidden layer.

    Davani, Díaz and Prabhakaran (2022): one task per annotator on a shared hidden layer.

        P(k says · of x) = softmax(H_k h(x)),   loss: the sum over observed labels

    The variance between heads estimates how much annotators will disagree; their vote is the
    consensus.

    When it fails: With few labels per annotator, heads overfit, and many annotators with one or two
    labels each add noise to the hidden layer.

        A. M. Davani, M. Díaz, V. Prabhakaran. Dealing with disagreements: looking beyond the
        majority vote in subjective annotations. TACL 10, 2022. doi:10.1162/tacl_a_00449
    """

    network = MultiTaskNet
