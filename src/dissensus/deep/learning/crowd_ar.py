"""Cao et al. (2023), CrowdAR: every label has a reliability, by annotator and item."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from ..nn import Batch, Table
from ...params import Probability
from .base import BuildParts, PairBatch, at_label
from .crowd_layer import CrowdLayer, MatrixModel


class CrowdArModel(MatrixModel):
    """A crowd layer that trusts some annotations more than others."""

    settings: CrowdAr

    def __init__(self, context: BuildParts, settings: CrowdAr) -> None:
        super().__init__(context, settings)
        self.difficulty = nn.Sequential(
            nn.Linear(self.classifier.width, 128),
            nn.Sigmoid(),
            nn.Linear(128, self.n_classes),
            nn.Sigmoid(),
        )
        self.expertise = Table(torch.zeros(self.n_annotators, self.n_classes))
        self.slope = nn.Parameter(torch.ones(self.n_classes))

    def reliability(self, pairs: PairBatch) -> Tensor:
        """Return the logit of m: (annotation)."""
        better = torch.sigmoid(self.expertise(pairs.annotator)) - self.difficulty(pairs.vector)
        return (better * pairs.log_truth.exp() * self.slope).sum(dim=1)

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        pairs = self.pairs(log_truth, vector, batch)
        log_given, logit = self.log_given(pairs), self.reliability(pairs)
        m = torch.sigmoid(logit)
        fit = -(m * at_label(log_given, batch.label) + (1 - m) * log_given.mean(dim=1)).mean()
        agrees = (pairs.log_truth.argmax(dim=1) == batch.label).to(m.dtype)
        trust = binary_cross_entropy_with_logits(logit, agrees)
        balance = self.settings.balance
        return balance * fit + (1 - balance) * trust

    def after_step(self) -> None:
        self.slope.clamp_(min=0)


@dataclass(frozen=True, kw_only=True)
class CrowdAr(CrowdLayer):
    """A crowd layer with a reliability for every annotation.

    Cao et al. (2023), CrowdAR: every label has a reliability, by annotator and item.

        d_i = sigmoid(W2 sigmoid(W1 x_i))               difficulty of every class
        e_j = sigmoid(E_j)                              expertise in every class
        m[i, j] = sigmoid(w · ((e_j − d_i) * p_i))      reliability, w ≥ 0

    A label of reliability m is taken as m of itself and 1 − m of any class; reliability itself
    learns from whether the label is what the classifier would say:

        loss = balance · CE(softmax(p W_j), m onehot(y) + (1 − m) / K)
             + (1 − balance) · BCE(m, [y is the classifier's best class])

    When it fails: Reliability learns from agreement with the classifier, so a classifier that is
    wrong early distrusts the right labels.

        Z. Cao et al. Learning from crowds with annotation reliability. SIGIR 2023.
        doi:10.1145/3539618.3592007

    Parameters
    ----------
    balance
        Weight of the labels; the rest is that of the reliabilities.
    """

    model = CrowdArModel

    balance: Probability = 0.9
