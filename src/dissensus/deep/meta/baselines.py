"""Prototypical networks on aggregated labels: first aggregate, then average embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ...params import Positive
from .base import Adapter, AdapterSettings, HeadTasks, log_parameter
from .em import squared_distance
from .em_full import EmFull
from .items import Items, normalize

_ROUNDS = 50


class PrototypeAdapter(Adapter):
    """Aggregated labels, then class means."""

    def __init__(self, settings: Prototypes) -> None:
        super().__init__()
        self.labels = settings.labels
        self.log_scale = log_parameter(settings.scale)
        model = EmFull(steps=_ROUNDS, c=settings.c, right=settings.right).build(0, 2)
        self.aggregator = model.requires_grad_(False)

    def adapt(self, support: Items) -> HeadTasks:
        posterior = self.aggregate(support)
        labelled = support.votes().sum(dim=2, keepdim=True) > 0
        weight = posterior * labelled
        total = torch.einsum("enk,enm->ekm", weight, support.u)
        count = weight.sum(dim=1)[:, :, None]
        # A class without items has the mean of all items.
        middle = support.u.mean(dim=1, keepdim=True)
        mean = torch.where(count > 0, total / count.clamp(min=1e-12), middle)
        scale = self.log_scale.exp()
        return HeadTasks(posterior, lambda u: -squared_distance(u * scale, mean * scale) / 2)

    @torch.no_grad()
    def aggregate(self, support: Items) -> Tensor:
        """Return the labels: (episode, item, class)."""
        if self.labels == "shares":
            return support.shares()
        if self.labels == "majority":
            votes = support.votes()
            return normalize((votes == votes.max(dim=2, keepdim=True).values).to(votes))
        posterior = self.aggregator.adapt(support._replace(u=support.u[:, :, :0])).posterior
        best = posterior >= posterior.max(dim=2, keepdim=True).values - 1e-9
        return normalize(best.to(posterior))


@dataclass(frozen=True, kw_only=True)
class Prototypes(AdapterSettings):
    """Prototypes of aggregated labels.

    Prototypical networks on aggregated labels: first aggregate, then average embeddings.

        label = majority | vote shares | Dawid & Skene with priors, without the embeddings
        mean[k] = Σ_n label[n, k] u[n] / Σ_n label[n, k]
        P(t = k | u) ∝ exp(−scale² ‖u − mean[k]‖² / 2)

    Unlike in `em-full`, embeddings do not inform the labels. A tied majority splits its item among
    the tied classes; unlabelled items are left out.

    When it fails: Classes that are not round clusters in the embedding, and noisy annotators:
    labels are aggregated before items are compared, so embeddings cannot correct them.

        J. Snell, K. Swersky, R. Zemel. Prototypical networks for few-shot learning. NeurIPS 2017.
        arXiv:1703.05175

    Parameters
    ----------
    labels
        Aggregation of the labels.
    scale
        Factor on embeddings.
    c
        Of Dawid & Skene: pseudo-count of every label, for every true class.
    right
        Of Dawid & Skene: additional pseudo-count of the right label.
    """

    labels: Literal["majority", "shares", "dawid-skene"] = "majority"
    scale: Positive = 1.0
    c: Positive = 0.1
    right: Positive = 1.0

    def build(self, width: int, n_classes: int) -> PrototypeAdapter:
        return PrototypeAdapter(self)
