"""Liao et al. (2024), PADL: an annotator's preference and their random error."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from ..nn.tables import Table
from ...params import Count
from .vector_networks import NetworkMethod, Sizes, VectorNet, hidden_layer

_LOG_STD = -1.0  # log σ at the start


class PadlNet(VectorNet):
    """A shared hidden layer and two heads per annotator."""

    def __init__(self, sizes: Sizes, method: Padl) -> None:
        super().__init__(sizes, method)
        self.samples = method.samples
        self.body = hidden_layer(sizes.n_features, method.hidden, method.dropout)
        start = torch.randn(sizes.n_annotators, 2, sizes.n_classes, method.hidden + 1)
        start = start / method.hidden**0.5
        start[:, 1] *= 0.1
        start[:, 1, :, -1] = _LOG_STD
        self.heads = Table(start)  # (annotator, μ or log σ, class, hidden + 1)

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        head = self.heads(annotator)
        out = torch.einsum("nd,nscd->nsc", self.body(x)[row], head[..., :-1]) + head[..., -1]
        mean, std = out[:, 0], out[:, 1].clamp(-6, 3).exp()
        if not self.training:
            return mean.log_softmax(dim=1)
        sample = mean + std * torch.randn(self.samples, *mean.shape, device=x.device)
        return sample.log_softmax(dim=2).logsumexp(dim=0) - log(self.samples)


@dataclass(frozen=True, kw_only=True)
class Padl(NetworkMethod):
    """The preference of every annotator and their random error.

    Liao et al. (2024), PADL: an annotator's preference and their random error.

        z ~ N(μ_k(x), σ_k(x)²) on the logits,   P(k says · of x) = mean over samples of softmax(z)

    μ and log σ are heads of every annotator on a shared hidden layer. Training samples z;
    predictions use the preference alone, softmax(μ_k(x)). The published method segments images.

    When it fails: Preference and random error are not identified with one label per item and
    annotator, so the error absorbs what the preference could explain.

        Z. Liao, S. Hu, Y. Xie, Y. Xia. Modeling annotator preference and stochastic annotation
        error for medical image segmentation. Medical Image Analysis 92, 2024. arXiv:2111.13410

    Parameters
    ----------
    samples
        Samples of the error in every step.
    """

    network = PadlNet

    samples: Count = 10
