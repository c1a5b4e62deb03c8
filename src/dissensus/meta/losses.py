"""What is lost on the queries of an episode: with clean labels of the source, and without.

`Clean` is the mean of −log p(truth). The others need no clean labels of queries:

    Forward     one label that is wrong at a known rate: −log Σ_k p_k flip[k, label]
    Annotated   labels of the annotators of the support: −log Σ_k p_k confusion[r, k, label], with
                the confusion that the same EM has found in the support; nothing clean anywhere
    Soft        the posterior of Dawid & Skene on the queries' labels as a target
    SmallLoss   as if labels were clean, but only the share of queries with the smallest loss
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from .adapter import Adapted
from .em import logs
from .em_full import EmFull
from .episodes import Episodes
from .items import Items

__all__ = ["Annotated", "Clean", "Forward", "QueryLoss", "SmallLoss", "Soft"]


class QueryLoss(ABC):
    """A loss on queries."""

    @abstractmethod
    def __call__(self, log_truth: Tensor, episodes: Episodes, task: Adapted | None) -> Tensor:
        """Return the mean loss of queries with these log-probabilities: (episode, query, class)."""


class Clean(QueryLoss):
    """The labels of queries are true."""

    def __call__(self, log_truth: Tensor, episodes: Episodes, task: Adapted | None) -> Tensor:
        return -log_truth.gather(2, episodes.truth[:, :, None]).mean()


class Forward(QueryLoss):
    """The first annotator's label of every query, wrong at a known rate, evenly."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, log_truth: Tensor, episodes: Episodes, task: Adapted | None) -> Tensor:
        n_classes = log_truth.shape[2]
        wrong = self.rate / max(n_classes - 1, 1)
        flip = torch.full((n_classes, n_classes), wrong).fill_diagonal_(1 - self.rate)
        log_given_labels = torch.logsumexp(log_truth[..., None] + logs(flip.to(log_truth)), dim=2)
        return -log_given_labels.gather(2, episodes.asked[:, :, :1]).mean()


class Annotated(QueryLoss):
    """The annotators' labels of queries, through the confusion found in the support."""

    def __call__(self, log_truth: Tensor, episodes: Episodes, task: Adapted | None) -> Tensor:
        assert task is not None
        log_confusion = logs(task.confusion)  # (episode, annotator, true, given)
        episode, query, annotator = torch.nonzero(episodes.asked >= 0, as_tuple=True)
        label = episodes.asked[episode, query, annotator]
        annotations = log_confusion[episode, annotator, :, label]  # (annotation, true)
        return -torch.logsumexp(log_truth[episode, query] + annotations, dim=1).mean()


class Soft(QueryLoss):
    """The posterior of Dawid & Skene on the labels of support and queries."""

    def __init__(self, steps: int = 20) -> None:
        self.aggregator = EmFull(steps=steps).build(0, 2)

    @torch.no_grad()
    def targets(self, episodes: Episodes) -> Tensor:
        """Return what is believed of the queries: (episode, query, class)."""
        label = torch.cat([episodes.label, episodes.asked], dim=1)
        blank = torch.zeros(*label.shape[:2], 0)
        items = Items.of(blank, label, n_classes=episodes.classes.shape[1])
        return self.aggregator.adapt(items).posterior[:, episodes.label.shape[1] :]

    def __call__(self, log_truth: Tensor, episodes: Episodes, task: Adapted | None) -> Tensor:
        return -(self.targets(episodes).to(log_truth) * log_truth).sum(dim=2).mean()


class SmallLoss(QueryLoss):
    """The first annotator's label of the queries that it fits best."""

    def __init__(self, kept: float) -> None:
        self.kept = kept

    def __call__(self, log_truth: Tensor, episodes: Episodes, task: Adapted | None) -> Tensor:
        loss = -log_truth.gather(2, episodes.asked[:, :, :1])[:, :, 0]  # (episode, query)
        return loss.sort(dim=1).values[:, : max(round(self.kept * loss.shape[1]), 1)].mean()
