"""Wei et al. (2022), Union-Net: all annotators as one who says (annotator, label)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..nn.batches import Batch
from .base import BuildParts, PairBatch, at_label
from .confusion_layers import ConfusionMethod, ConfusionModel


class UnionNetModel(ConfusionModel):
    """A classifier and one distribution over annotators and labels for every class."""

    rate: Tensor  # (annotator): log share of all labels

    def __init__(self, context: BuildParts, settings: UnionNet) -> None:
        super().__init__(context, settings)
        self.register_buffer("rate", (self.count / self.count.sum()).log())

    def log_union(self, annotator: Tensor) -> Tensor:
        """Return log V of these annotators: (annotation, true, given).

        Its columns are distributions over all annotators: the one place where a step costs more
        the more of them there are.
        """
        everyone = self.matrices.common + self.matrices.own.all + self.rate[:, None, None]
        total = everyone.logsumexp(dim=(0, 2))  # (true)
        return everyone[annotator] - total[:, None]

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.log_union(annotator).log_softmax(dim=-1)

    def log_joint(self, log_truth: Tensor, annotator: Tensor) -> Tensor:
        """Return log u of these annotators' blocks: (annotation, given)."""
        return torch.logsumexp(log_truth[:, :, None] + self.log_union(annotator), dim=1)

    def log_given(self, pairs: PairBatch) -> Tensor:
        return self.log_joint(pairs.log_truth, pairs.annotator).log_softmax(dim=-1)

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        joint = self.log_joint(log_truth[batch.row], batch.annotator)
        return -(at_label(joint, batch.label) - self.rate[batch.annotator]).mean()


@dataclass(frozen=True, kw_only=True)
class UnionNet(ConfusionMethod):
    """All annotators as one, with labels (annotator, label); settings as of `trace-reg`.

    Wei et al. (2022), Union-Net: all annotators as one who says (annotator, label).

        u(x)[(j, l)] = Σ_k V[(j, l), k] p_k(x),   every column of V a distribution over all (j, l)

    so the annotator is part of the label. The distribution of annotator j is their block of u,
    normalized. Blocks start at an identity of size `trust`, times the annotator's share of labels.

    When it fails: One matrix over all pairs of annotator and label: with thousands of annotators it
    is large and each block has few labels. It is not ahead of a crowd layer on the sets measured
    here.

        H. Wei, R. Xie, L. Feng, B. Han, B. An. Deep learning from multiple noisy annotators as a
        union. IEEE Transactions on Neural Networks and Learning Systems, 2022.
        doi:10.1109/TNNLS.2022.3168696
    """

    model = UnionNetModel
