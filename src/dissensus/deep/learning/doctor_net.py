"""Guan et al. (2018), Doctor Net: a head for every annotator, then the best mixture of heads."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear as apply

from ..nn import Batch, Examples, Table
from ...params import NonNegative, Positive
from .confusion import log_count_confusion, vote_shares
from .base import BuildParts, CrowdModel, Method, PairBatch, at_label


class DoctorNetModel(CrowdModel):
    """A body, a head for every annotator, and how much each head counts."""

    settings: DoctorNet
    log_counted: Tensor  # (annotator, true, given)

    def __init__(self, context: BuildParts, settings: DoctorNet) -> None:
        super().__init__(context, settings)
        width = self.classifier.hidden_width + 1  # the last for the bias
        self.own = Table(torch.zeros(self.n_annotators, self.n_classes, width))
        self.mixture = Table(torch.zeros(self.n_annotators, 1))  # logits of the weights
        votes = vote_shares(context.annotations)
        start = log_count_confusion(context.annotations, votes, settings.pooled)
        self.register_buffer("log_counted", start)

    def log_class(self, vector: Tensor) -> Tensor:
        hidden = self.classifier.body(vector)
        own = torch.einsum("j,jkd->kd", self.mixture.all[:, 0].softmax(dim=0), self.own.all)
        return self._logits(hidden, own.detach()).log_softmax(dim=-1)

    def _logits(self, hidden: Tensor, own: Tensor) -> Tensor:
        return self.classifier.head(hidden) + apply(hidden, own[:, :-1], own[:, -1])

    def log_head(self, hidden: Tensor, annotator: Tensor) -> Tensor:
        """Return what annotators say, by their own heads: (annotation, given)."""
        own = self.own(annotator)
        theirs = torch.einsum("nd,nkd->nk", hidden, own[:, :, :-1]) + own[:, :, -1]
        return (self.classifier.head(hidden) + theirs).log_softmax(dim=-1)

    def loss(self, batch: Batch) -> Tensor:
        hidden = self.classifier.body(self.classifier.encode(batch.x))
        if self.warming:
            log = self.classifier.head(hidden).log_softmax(dim=-1)
            return -at_label(log[batch.row], batch.label).mean()
        log = at_label(self.log_head(hidden[batch.row], batch.annotator), batch.label)
        here = torch.unique(batch.annotator)
        weight = self.mixture(here)[:, 0].softmax(dim=0)
        own = torch.einsum("j,jkd->kd", weight, self.own(here).detach())
        hidden = hidden.detach()
        common = self.classifier.head(hidden).detach()
        mixed = (common + apply(hidden, own[:, :-1], own[:, -1])).log_softmax(dim=-1)
        mixing = at_label(mixed[batch.row], batch.label)
        return self.penalty(batch.annotator) - log.mean() - mixing.mean()

    def begin(self, examples: Examples, epoch: int) -> None:
        super().begin(examples, epoch)
        if not self.warming:
            posterior = self.log_classes(examples).double().exp().cpu().numpy()
            counted = log_count_confusion(examples.annotations, posterior, self.settings.pooled)
            self.log_counted.copy_(counted)

    def log_given(self, pairs: PairBatch) -> Tensor:
        return self.log_head(self.classifier.body(pairs.vector), pairs.annotator)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.log_counted[annotator]

    def penalty(self, annotator: Tensor) -> Tensor:
        return self.gaussian_prior(self.own(annotator), annotator, self.settings.spread)


@dataclass(frozen=True, kw_only=True)
class DoctorNet(Method):
    """A head for every annotator, and a mixture of heads for the truth.

    Guan et al. (2018), Doctor Net: a head for every annotator, then the best mixture of heads.

        P(j says · of x) = softmax(H_j h(x)),   the class = softmax(Σ_j w_j H_j h(x)),  Σ_j w_j = 1

    The body h is shared. A head is what all share plus a part of one's own, under a Gaussian prior.
    The weights w learn to predict the labels of a batch by the heads of its annotators; heads and
    body do not learn from that. We mix logits where the paper mixes probabilities: the mixture is
    then a head itself, and predicts at the price of one.

    When it fails: With few labels per annotator, heads are copies of the shared one. It models what
    annotators would answer, not a truth behind them, so common errors stay.

        M. Guan, V. Gulshan, A. Dai, G. Hinton. Who said what: modeling individual labelers improves
        classification. AAAI 2018.

    Parameters
    ----------
    spread
        Standard deviation of the prior on each annotator's own part of a head; `None` for none.
    pooled
        Weight of what all annotators do in each row of an annotator's confusion matrix.
    """

    model = DoctorNetModel

    spread: Positive | None = 0.1
    pooled: NonNegative = 5.0
