"""D-LEMA (2021): one network per annotator, or per group of similar annotators."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import dropout

from ...answers.annotations import Annotations, Integers
from ..nn.tables import Table
from ...params import Count
from .vector_networks import NetworkMethod, Sizes, VectorNet
from .own_majority import label_marginals


def groups(annotations: Annotations, bases: int) -> Integers:
    """Return the group of every annotator: their own, or one with similar label marginals."""
    if annotations.n_annotators <= bases:
        return np.arange(annotations.n_annotators)
    log_marginals = np.log(label_marginals(annotations))
    centred = log_marginals - log_marginals.mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    order = np.argsort(centred @ axis, kind="stable")
    count = annotations.labels_per_annotator[order]
    before = np.cumsum(count) - count
    out = np.empty(annotations.n_annotators, dtype=np.int64)
    out[order] = np.minimum(before * bases // max(len(annotations), 1), bases - 1)
    return out


class DLemaNet(VectorNet):
    """A network per group."""

    group: Tensor  # (annotator)

    def __init__(self, sizes: Sizes, method: DLema) -> None:
        super().__init__(sizes, method)
        self.dropout, self.samples, self.bases = method.dropout, method.samples, method.bases
        count = min(sizes.n_annotators, method.bases)
        first = torch.randn(count, method.hidden, sizes.n_features + 1) / sizes.n_features**0.5
        last = torch.randn(count, sizes.n_classes, method.hidden + 1) / method.hidden**0.5
        self.first, self.last = Table(first), Table(last)
        self.register_buffer("group", torch.zeros(sizes.n_annotators, dtype=torch.int64))

    def start(self, annotations: Annotations) -> None:
        if not bool(self.group.any()):
            self.group.copy_(torch.from_numpy(groups(annotations, self.bases)))

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        group, index = torch.unique(self.group[annotator], return_inverse=True)
        first, last = self.first(group), self.last(group)
        samples = 1 if self.training else self.samples
        logs = [self._sample(x, first, last)[row, index] for _ in range(samples)]
        return torch.stack(logs).logsumexp(dim=0) - log(samples)

    def _sample(self, x: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """Return log-probabilities under one dropout mask: (item, group, class)."""
        x = dropout(x, self.dropout)
        hidden = torch.einsum("id,ghd->igh", x, first[:, :, :-1]) + first[:, :, -1]
        hidden = dropout(hidden.relu(), self.dropout)
        logits = torch.einsum("igh,gch->igc", hidden, last[:, :, :-1]) + last[:, :, -1]
        return logits.log_softmax(dim=2)


@dataclass(frozen=True, kw_only=True)
class DLema(NetworkMethod):
    """One network per annotator, or per group of similar annotators.

    D-LEMA (2021): one network per annotator, or per group of similar annotators.

    Nothing is shared but the encoder. Predictions are means over `samples` of Monte-Carlo dropout.
    With more annotators than `bases`, those with similar label marginals share a network:
    annotators are sorted along the first principal axis of their log marginals and cut into groups
    with equally many labels. The published method segments images and forms its groups by hand; the
    sorting is ours.

        P(k gives · to x) = mean over dropout samples of softmax(network_g(x)),   g the group of k

    When it fails: With few labels per network, since nothing is shared. Groups by label marginals
    put together people with the same rates and different tastes.

        Z. Mirikharaji et al. D-LEMA: deep learning ensembles from multiple annotations, application
        to skin lesion segmentation. CVPR Workshops 2021. arXiv:2012.07206

    Parameters
    ----------
    bases
        Maximal number of networks.
    samples
        Dropout samples that a prediction is the mean of.
    """

    network = DLemaNet

    hidden: Count = 32
    bases: Count = 16
    samples: Count = 10
