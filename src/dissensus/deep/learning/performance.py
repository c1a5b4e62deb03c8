"""The annotator network of MaDL: how an annotator errs, and with `instance` on which items.

    e = embedding of the annotator, c = e, or (e, embedding of the item)
    logits = W relu(e + relu(V c)) + b,   confusion = softmax over the label given

Three kinds of errors: `full` has a logit for every pair of classes, `diagonal` one for every class
and spreads the errors evenly, `scalar` a single one. At the start b makes every annotator right
with probability `trust`. An annotator has a row of a table or, where features of annotators are
given, a linear map of these, which also works for new annotators.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from ..nn.tables import Table
from ...params import Count, Positive
from .confusion import squares, trusting
from .base import BuildParts, CrowdModel, Method
from .confusion_layers import Trust
from .network import linear


class PerformanceModel(CrowdModel):
    """A classifier and a network that says how annotators err."""

    settings: PerformanceMethod
    features: Tensor | None

    def __init__(self, context: BuildParts, settings: PerformanceMethod) -> None:
        super().__init__(context, settings)
        width, classes = settings.width, self.n_classes
        self.register_buffer("features", context.features)
        if context.features is None:
            self.table = Table(torch.randn(self.n_annotators, width) / math.sqrt(width))
        else:
            self.embed = nn.Linear(context.features.shape[1], width)
        self.sight = nn.Linear(self.classifier.width, width) if settings.instance else None
        self.hidden = nn.Linear(2 * width if settings.instance else width, width)
        cells = {"full": classes**2, "diagonal": classes, "scalar": 1}[settings.errors]
        self.output = linear(width, cells, 0.1)
        with torch.no_grad():
            self.output.bias.copy_(self._start())

    def _start(self) -> Tensor:
        """Return the bias under which annotators are right as often as trusted: (cell)."""
        trust = self.settings.trust
        if self.settings.errors == "full":
            return trusting(trust, self.n_classes).flatten()
        return torch.tensor(math.log(trust / (1 - trust)))

    def embedding(self, annotator: Tensor) -> Tensor:
        """Return what is known of annotators: (annotation, width)."""
        if self.features is None:
            return self.table(annotator)
        return self.embed(self.features[annotator])

    def log_errors(self, embedding: Tensor, vector: Tensor) -> Tensor:
        """Return log-confusion from embeddings: (annotation, true, given)."""
        joint = embedding
        if self.sight is not None:
            joint = torch.cat([embedding, torch.tanh(self.sight(vector))], dim=1)
        cells = self.output(torch.relu(embedding + torch.relu(self.hidden(joint))))
        classes = self.n_classes
        if self.settings.errors == "full":
            return cells.reshape(-1, classes, classes).log_softmax(dim=-1)
        right = torch.diag_embed(cells.expand(-1, classes))
        eye = torch.eye(classes, dtype=cells.dtype, device=cells.device)
        return (right - math.log(max(classes - 1, 1)) * (1 - eye)).log_softmax(dim=-1)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.log_errors(self.embedding(annotator), vector)

    def penalty(self, annotator: Tensor) -> Tensor:
        if self.settings.spread is None:
            return super().penalty(annotator)
        variance = 2 * self.settings.spread**2
        prior = self.over_all(squares(self.embedding(annotator)), annotator)
        prior = prior + self.output.weight.square().sum()
        if self.sight is not None:
            prior = prior + self.sight.weight.square().sum() * self.classifier.width
        return prior / variance / self.n_annotations


@dataclass(frozen=True, kw_only=True)
class PerformanceMethod(Method):
    """What methods with an annotator network have in common.

    Parameters
    ----------
    errors
        Which errors an annotator may have of their own: full, diagonal or scalar.
    instance
        Whether errors depend on the item too. An annotator network that sees the item can do the
        classifier's work, so this needs many labels of each annotator.
    width
        Length of the embeddings.
    trust
        How often every annotator is right at the start.
    spread
        Standard deviation of the Gaussian prior on embeddings, weights and what is seen of an
        item; `None` for no prior.
    """

    crowd_lr: Positive = 0.01  # the network is in every batch, unlike rows of a table
    errors: Literal["full", "diagonal", "scalar"] = "full"
    instance: bool = False
    width: Count = 16
    trust: Trust = 0.6
    spread: Positive | None = 2.0
