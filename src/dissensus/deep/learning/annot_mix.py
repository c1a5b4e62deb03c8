"""Herde et al. (2024), annot-mix: items, annotators and labels mixed in pairs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..nn.batches import Batch
from ...params import Positive
from .performance import PerformanceMethod, PerformanceModel
from .confusion_layers import Trust


class AnnotMixModel(PerformanceModel):
    """An annotator network that learns from mixed annotations."""

    settings: AnnotMix

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        size, alpha = len(batch.label), self.settings.alpha
        # Drawn by torch's own generator, whose state a checkpoint holds.
        pair = torch._sample_dirichlet(vector.new_full((size, 2), alpha))
        return self.mixed_loss(vector, batch, pair[:, :1], torch.randperm(size))

    def mixed_loss(self, vector: Tensor, batch: Batch, share: Tensor, other: Tensor) -> Tensor:
        """Return the loss of annotations mixed with others: shares (annotation, 1)."""

        def mix(rows: Tensor) -> Tensor:
            return share * rows + (1 - share) * rows[other]

        mixed = mix(vector[batch.row])
        log_errors = self.log_errors(mix(self.embedding(batch.annotator)), mixed.detach())
        log_truth = self.log_class(mixed)
        log_given = torch.logsumexp(log_truth[:, :, None] + log_errors, dim=1)
        annotations = torch.nn.functional.one_hot(batch.label, self.n_classes).to(log_given.dtype)
        return -(mix(annotations) * log_given).sum(dim=1).mean()


@dataclass(frozen=True, kw_only=True)
class AnnotMix(PerformanceMethod):
    """A network of how annotators err, learned from mixed annotations.

    Herde et al. (2024), annot-mix: items, annotators and labels mixed in pairs.

    Every annotation of a batch is mixed with another, by a share λ ~ Beta(α, α) of its own:

        vector λ x + (1 − λ) x',   annotator λ e + (1 − λ) e',   label λ y + (1 − λ) y'
        loss = −Σ_l label_l log Σ_k p_k(mixed vector) confusion_kl(mixed vector, mixed annotator)

    The network learns to interpolate linearly and memorizes less. We mix vectors of the encoder
    rather than raw inputs: the same where inputs are features, and possible for text. The paper's
    embeddings have 128 numbers; ours 16, under which held-out labels were more likely. As in madl,
    confusion matrices depend on the item only with `instance`.

    When it fails: Where classes lie between each other, a mixture of two inputs looks like a third
    class. With `instance` it overfits small sets.

        M. Herde, L. Lührs, D. Huseljic, B. Sick. Annot-mix: learning with noisy class labels from
        multiple annotators via a mixup extension. ECAI 2024.

    Parameters
    ----------
    alpha
        Of Beta(α, α), from which the shares are drawn; 1 makes all shares equally likely.
    """

    model = AnnotMixModel

    alpha: Positive = 1.0
    trust: Trust = 0.9
