"""Aggregate first, then train as if the labels were true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ..nn.batches import Batch
from ...params import NonNegative, Positive
from ...registry import aggregators
from .confusion import log_count_confusion
from .base import BuildParts, CrowdModel, Epochs, Method


class TwoStageModel(CrowdModel):
    """A classifier of fixed labels."""

    per_item = ("target",)
    joint = True
    target: Tensor  # (item, class): what to learn; rows of zeros are left out
    log_counted: Tensor  # (annotator, true, given)

    def __init__(
        self, context: BuildParts, settings: TwoStage, target: Tensor, log_counted: Tensor
    ) -> None:
        super().__init__(context, settings)
        self.register_buffer("target", target)
        self.register_buffer("log_counted", log_counted)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.log_counted[annotator]

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        target = self.target[batch.item]
        return -(target * log_truth).sum() / target.sum().clamp(min=1)


class PosteriorModel(TwoStageModel):
    """A classifier of posteriors that were given: these are predicted, not annotations."""

    held_out_name: ClassVar[str] = "labels"

    def log_probability(self, batch: Batch) -> Tensor:
        log_truth = self.log_truth(batch.x)
        return (self.target[batch.item] * log_truth).sum(dim=1)[batch.row]


@dataclass(frozen=True, kw_only=True)
class TwoStage(Method):
    """Train on the labels of any aggregator.

    Aggregate first, then train as if the labels were true.

    Any aggregator gives q[i, k], the probability that item i is of class k. Hard, its most probable
    class is learned as an ordinary label; soft, the distribution itself:

        loss = −(1/n) Σ_i Σ_k q[i, k] log p_k(x_i),

    whose least value is the entropy of q, not zero. The annotators' confusion matrices are counted
    under q; they decide nothing about the classifier but the epoch at which it is best. Where q is
    given, no aggregator is used, and the epoch is chosen by the likelihood of q on held-out items.

    When it fails: Errors of the aggregated labels are learned as if they were true, and inputs do
    not help to correct them: with one to three labels per item, methods that learn from all labels
    at once are ahead.

    Parameters
    ----------
    labels
        The aggregator, as the registry writes it.
    soft
        Learn the aggregator's posterior instead of its most probable class.
    temperature
        Above 1 flattens a soft posterior, below 1 sharpens it.
    pooled
        Weight of what all annotators do in each row of an annotator's confusion matrix.
    """

    warm_up: Epochs = 0
    labels: str = "majority"
    soft: bool = False
    temperature: Positive = 1.0
    pooled: NonNegative = 5.0

    def build(self, context: BuildParts) -> TwoStageModel:
        aggregator, annotations = aggregators.create(self.labels), context.annotations
        if context.posterior is not None:
            posterior = context.posterior.double().numpy()
            counted = log_count_confusion(annotations, posterior, self.pooled)
            return PosteriorModel(context, self, context.posterior, counted)
        target = posterior = np.zeros((annotations.n_items, annotations.n_classes))
        if len(annotations):
            result = aggregator.fit(annotations)
            posterior = result.posterior
            target = np.eye(annotations.n_classes)[result.label] * (result.label >= 0)[:, None]
        if self.soft:
            target = posterior ** (1 / self.temperature)
            target = target / target.sum(axis=1, keepdims=True)
        target = target * (annotations.labels_per_item > 0)[:, None]
        counted = log_count_confusion(annotations, posterior, self.pooled)
        return TwoStageModel(context, self, torch.tensor(target, dtype=counted.dtype), counted)
