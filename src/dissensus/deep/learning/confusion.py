"""Confusion matrices of annotators who gave few labels each.

Logits are a shared matrix plus the annotator's own,

    log_confusion[j, k, l] = log_softmax_l( common[k, l] + own[j, k, l] ),

with a Gaussian prior of spread `spread` on every entry of `own`. An annotator with forty labels on
eight classes cannot fill sixty-four cells; the prior shrinks them towards the shared matrix. It
enters the loss divided by the number of annotations, as in the posterior.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from ...answers.annotations import Annotations, Floats
from ..nn.tables import Table


class AnnotatorMatrices(nn.Module):
    """One matrix for every annotator: what all share and what is their own."""

    def __init__(self, start: Tensor, n_annotators: int) -> None:
        super().__init__()
        self.common = nn.Parameter(start.clone())  # (true, given)
        self.own = Table(torch.zeros(n_annotators, *start.shape))  # (annotator, true, given)

    def forward(self, annotator: Tensor) -> Tensor:
        return self.common + self.own(annotator)


def squares(rows: Tensor) -> Tensor:
    """Return the sum of the squares in every row of a table."""
    return rows.flatten(1).square().sum(dim=1)


def trusting(accuracy: float, n_classes: int) -> Tensor:
    """Return logits under which every class is labelled correctly this often: (true, given).

    >>> trusting(0.8, 3).softmax(dim=1).diagonal().tolist()
    [0.800..., 0.800..., 0.800...]
    """
    others = max(n_classes - 1, 1)
    return math.log(accuracy * others / (1 - accuracy)) * torch.eye(n_classes)


def count_confusion(
    annotations: Annotations, posterior: Floats, own: float = 0.01, common: float = 0.0
) -> Floats:
    """Return confusion matrices counted under a posterior: (annotator, true, given).

    Every cell gets `own`, and every row the weight `common`, shared out as all annotators
    together fill that row.
    """
    n_classes = annotations.n_classes
    labels = annotations.part(0, annotations.n_items).labels
    counts = (labels.T @ posterior).reshape(-1, n_classes, n_classes).swapaxes(1, 2)
    pooled = counts.sum(axis=0) + own + np.eye(n_classes)
    counts = counts + own + common * pooled / pooled.sum(axis=1, keepdims=True)
    return counts / counts.sum(axis=2, keepdims=True)


def log_count_confusion(annotations: Annotations, posterior: Floats, common: float) -> Tensor:
    """Return the log of `count_confusion` as a tensor."""
    counted = count_confusion(annotations, posterior, common=common)
    return torch.tensor(np.log(counted), dtype=torch.get_default_dtype())


def vote_shares(annotations: Annotations) -> Floats:
    """Return the share of the labels of an item that each class has; zeros without labels."""
    votes = annotations.votes()
    return votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)
