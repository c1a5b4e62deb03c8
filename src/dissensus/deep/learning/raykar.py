"""A classifier learns posteriors of the items: those of EM, or those of an aggregator.

In Raykar's EM the classifier is every item's own prior, so posteriors change while it learns them.
In two stages, labels are aggregated first, and then learned as if they were true.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, ClassVar

import numpy as np
import torch
from annotated_types import Ge
from scipy.special import log_softmax
from torch import Tensor, nn

from ...answers.annotations import Annotations, Floats
from ...params import NonNegative, Positive
from ...registry import aggregators
from ..nn.batches import Batch, Examples
from .base import (
    BuildParts,
    Classifier,
    CrowdModel,
    Epochs,
    LearningMethod,
    count_confusion,
    log_count_confusion,
)
from .confusion_layers import log_volume


def expect(annotations: Annotations, log_prior: Floats, confusion: Floats) -> Floats:
    """Return the E step: the posterior of every item, (item, class)."""
    labels = annotations.part(0, annotations.n_items).labels
    given_true = np.log(confusion).swapaxes(1, 2).reshape(-1, annotations.n_classes)
    return np.exp(log_softmax(log_prior + labels @ given_true, axis=1))


class RaykarModel(CrowdModel):
    """A classifier trained on posteriors that depend on it."""

    settings: Raykar
    per_item = ("target", "fold")
    joint = True
    target: Tensor  # (item, class): the posterior of the last E step
    log_counted: Tensor  # (annotator, true, given)
    fold: Tensor  # (item)

    def __init__(self, context: BuildParts, settings: Raykar) -> None:
        super().__init__(context, settings)
        self.others = nn.ModuleList([context.classifier() for _ in range(settings.folds)])
        votes = context.annotations.votes() + 1e-9
        posterior = votes / votes.sum(axis=1, keepdims=True)
        self.register_buffer("target", torch.zeros(posterior.shape))
        self.register_buffer("log_counted", torch.zeros(self.n_annotators, *[self.n_classes] * 2))
        self.register_buffer("fold", torch.arange(self.n_items) % max(settings.folds, 1))
        self._store(posterior, context.annotations)

    def networks(self) -> Iterator[nn.Parameter]:
        return chain(super().networks(), self.others.parameters())

    @property
    def classifiers(self) -> list[Classifier]:
        """Those that each miss a part of the items."""
        return list(self.others)  # type: ignore[arg-type]

    def _store(self, posterior: Floats, annotations: Annotations) -> None:
        settings = self.settings
        confusion = count_confusion(
            annotations, posterior, own=settings.smoothing, common=settings.pooled
        )
        self.target.copy_(torch.from_numpy(posterior))
        self.log_counted.copy_(torch.from_numpy(np.log(confusion)))

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.log_counted[annotator]

    def log_class(self, vector: Tensor) -> Tensor:
        own = super().log_class(vector)
        if self.training or not len(self.others):
            return own
        log = torch.stack([own, *(model.log_truth(vector) for model in self.classifiers)])
        return log.logsumexp(dim=0) - np.log(len(log))

    def begin(self, examples: Examples, epoch: int) -> None:
        super().begin(examples, epoch)
        if self.warming:
            return
        prior = self.settings.damping * self.prior(examples).double().cpu().numpy()
        for _ in range(self.settings.rounds):
            confusion = np.exp(self.log_counted.double().cpu().numpy())
            self._store(expect(examples.annotations, prior, confusion), examples.annotations)

    def prior(self, examples: Examples) -> Tensor:
        """Return what the classifiers say of every item that they have not seen: (item, class)."""
        log = torch.zeros_like(self.target)
        for batch in examples.batches(1024, seed=0, epoch=0, shuffle=False):
            log[batch.item] = self._out_of_fold(batch)
        return log.clamp(min=float(np.log(self.settings.least)))

    def _out_of_fold(self, batch: Batch) -> Tensor:
        if not len(self.others):
            return self.log_truth(batch.x)
        log = torch.stack([model(batch.x).log_softmax(dim=-1) for model in self.others])
        return log[self.fold[batch.item], torch.arange(len(batch.item))]

    def loss(self, batch: Batch) -> Tensor:
        own = super().loss(batch)
        for fold, model in enumerate(self.others):
            own = own + self._learned(model(batch.x).log_softmax(dim=-1), batch, fold)
        return own

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        return self._learned(log_truth, batch, None)

    def _learned(self, log_truth: Tensor, batch: Batch, without: int | None) -> Tensor:
        labelled = torch.bincount(batch.row, minlength=len(batch.item)) > 0
        if without is not None:
            labelled = labelled & (self.fold[batch.item] != without)
        target = self.target[batch.item] * labelled[:, None]
        loss = -(target * log_truth).sum() / target.sum().clamp(min=1)
        if self.settings.volume:
            loss = loss - self.settings.volume * log_volume(log_truth[labelled].exp())
        return loss


@dataclass(frozen=True, kw_only=True)
class Raykar(LearningMethod):
    """EM with any network.

    Raykar et al. (2010), AggNet: EM with a classifier as every item's own prior.

        E   q[i, k] ∝ p_k(x_i) Π_j confusion[j, k, label of j on i]
        M   confusion by counting under q; the classifier by an epoch of training on q

    With a constant classifier this is Dawid and Skene's model.

    Beyond the papers: a network that has memorized an item confirms itself in the E step. So with
    `folds` there are as many more classifiers, each trained without one fold of the items, and the
    prior of an item is out of fold; predictions for new items average all of them. And `volume`
    rewards predictions that spread over classes, as geo-crowdnet-f does. It helps where inputs
    determine the class and annotators share errors, and harms where they do not; `choose` decides
    by the annotations.

    When it fails: Where inputs say little about the class, the classifier adds noise to the E-step.
    Without `folds`, a network that has memorized the items confirms its own labels.

        V. C. Raykar et al. Learning from crowds. JMLR 11, 2010.
        S. Albarqouni et al. AggNet: deep learning from crowds for mitosis detection in breast
        cancer histology images. IEEE Transactions on Medical Imaging 35(5), 2016.
        doi:10.1109/TMI.2016.2528120

    Parameters
    ----------
    folds
        Number of classifiers for out-of-fold posteriors; 0 uses the classifier itself.
    rounds
        E and M steps before every epoch.
    smoothing
        Pseudo-count in every cell of a confusion matrix.
    pooled
        Weight of what all annotators do in each row of an annotator's confusion matrix.
    least
        The least probability that the classifier may give a class in the E step.
    damping
        How much the classifier counts as a prior; 1 is Bayes' rule, more allows for annotators
        who err together.
    volume
        What a log-volume of one is worth, as in geo-crowdnet-f: predictions that spread over the
        classes.
    """

    model = RaykarModel

    folds: Annotated[int, Ge(0)] = 0
    rounds: Annotated[int, Ge(1)] = 1
    smoothing: Positive = 0.01
    pooled: NonNegative = 5.0
    least: Positive = 1e-3
    damping: NonNegative = 1.0
    volume: NonNegative = 0.0


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
class TwoStage(LearningMethod):
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
            log_counted = log_count_confusion(annotations, posterior, self.pooled)
            return PosteriorModel(context, self, context.posterior, log_counted)
        target = posterior = np.zeros((annotations.n_items, annotations.n_classes))
        if len(annotations):
            result = aggregator.fit(annotations)
            posterior = result.posterior
            target = np.eye(annotations.n_classes)[result.label] * (result.label >= 0)[:, None]
        if self.soft:
            target = posterior ** (1 / self.temperature)
            target = target / target.sum(axis=1, keepdims=True)
        target = target * (annotations.labels_per_item > 0)[:, None]
        log_counted = log_count_confusion(annotations, posterior, self.pooled)
        return TwoStageModel(
            context, self, torch.tensor(target, dtype=log_counted.dtype), log_counted
        )
