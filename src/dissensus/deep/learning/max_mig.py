"""What annotators would say is learned beside the classifier, and the two are brought together.

Max-MIG shares information between a classifier and an aggregator of labels; Doctor Net has a head
for every annotator, and then the best mixture of heads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear as apply

from ...params import NonNegative, Positive
from ..nn import Batch, Examples, Table
from .base import (
    BuildParts,
    CrowdModel,
    LearningMethod,
    PairBatch,
    at_label,
    log_count_confusion,
    vote_shares,
)

# ∂f and f*(∂f) of log S
DIVERGENCES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "kl": (lambda s: 1 + s, torch.exp),
    "pearson": (lambda s: 2 * (s.exp() - 1), lambda s: (2 * s).exp() - 1),
    "jensen": (
        lambda s: np.log(2) + s - torch.nn.functional.softplus(s),
        lambda s: torch.nn.functional.softplus(s) - np.log(2),
    ),
    "reverse-kl": (lambda s: -(-s).exp(), lambda s: s - 1),
    "hellinger": (lambda s: 1 - (-s / 2).exp(), lambda s: (s / 2).exp() - 1),
}


class MaxMigModel(CrowdModel):
    """A classifier and an aggregator of labels, each the other's teacher."""

    settings: MaxMig
    start: Tensor  # (annotator, true, given)

    def __init__(self, context: BuildParts, settings: MaxMig) -> None:
        super().__init__(context, settings)
        votes = vote_shares(context.annotations)
        start = log_count_confusion(context.annotations, votes, settings.pooled)
        self.register_buffer("start", start)
        self.own = Table(torch.zeros(start.shape))
        share = torch.tensor(np.log(votes.sum(axis=0) + 1), dtype=start.dtype)
        self.prior = nn.Parameter(share)  # (class): logits of b

    def matrices(self, annotator: Tensor) -> Tensor:
        """Return C: (annotation, true, given)."""
        return self.start[annotator] + self.own(annotator)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.matrices(annotator).log_softmax(dim=-1)

    def log_crowd(self, batch: Batch) -> Tensor:
        """Return log g, the crowd's view of every item: (item, class)."""
        label = batch.label[:, None, None].expand(-1, self.n_classes, 1)
        log_label = self.matrices(batch.annotator).gather(2, label)[:, :, 0]  # (annotation, true)
        log = self.prior.log_softmax(dim=0).repeat(len(batch.item), 1)
        return log.index_add(0, batch.row, log_label).log_softmax(dim=-1)

    def crowd_loss(self, log_truth: Tensor, vector: Tensor, batch: Batch) -> Tensor:
        rare = self.log_crowd(batch) - self.prior.log_softmax(dim=0)
        log_s = torch.logsumexp(log_truth[:, None] + rare[None], dim=2)  # (item, item)
        gain, cost = DIVERGENCES[self.settings.divergence]
        size = len(log_s)
        unlike = 1 - torch.eye(size, dtype=log_s.dtype, device=log_s.device)
        mean_cost = (cost(log_s) * unlike).sum() / max(size * (size - 1), 1)
        return mean_cost - gain(log_s.diagonal()).mean()

    def penalty(self, annotator: Tensor) -> Tensor:
        return self.gaussian_prior(self.own(annotator), annotator, self.settings.spread)


@dataclass(frozen=True, kw_only=True)
class MaxMig(LearningMethod):
    """Maximal mutual information of classifier and crowd.

    Cao et al. (2019), Max-MIG: maximal mutual information of classifier and crowd.

    Two predictions of the truth: h(x) = p(x) by the classifier, and by the crowd

        g(labels of i) = softmax(log b + Σ_j C_j[label of j on i, ·]).

    Given the truth they are independent, so what they share is about the truth. Trained is a lower
    bound of their f-mutual information over a batch, S[i, s] = Σ_k h_k(x_i) g_k(labels of s) / b_k:

        loss = −mean_i ∂f(S[i, i]) + mean_{i≠s} f*(∂f(S[i, s]))       KL: ∂f = 1 + log S, f*∂f = S

    Annotators may err together: only inputs and labels must be independent given the truth. Which
    class is which is known by the start alone, matrices counted under the votes.

    When it fails: With few classes seen in a batch or small batches the bound is noisy. What inputs
    and labels share need not be the truth: a background that is correlated with annotators' errors
    is taken for it.

        P. Cao, Y. Xu, Y. Kong, Y. Wang. Max-MIG: an information theoretic approach for joint
        learning from crowds. ICLR 2019.

    Parameters
    ----------
    divergence
        Which f-divergence measures information. Total variation is not among them: its ∂f is a
        sign, which has no gradient.
    pooled
        Weight of what all annotators do in each row of an annotator's matrix at the start.
    spread
        How far matrices may go from the start, as a standard deviation; `None` for as far as the
        labels take them.
    """

    model = MaxMigModel

    divergence: Literal["kl", "reverse-kl", "pearson", "jensen", "hellinger"] = "kl"
    pooled: NonNegative = 5.0
    spread: Positive | None = 2.0


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
        logits = torch.einsum("nd,nkd->nk", hidden, own[:, :, :-1]) + own[:, :, -1]
        return (self.classifier.head(hidden) + logits).log_softmax(dim=-1)

    def loss(self, batch: Batch) -> Tensor:
        hidden = self.classifier.body(self.classifier.encode(batch.x))
        if self.warming:
            log = self.classifier.head(hidden).log_softmax(dim=-1)
            return -at_label(log[batch.row], batch.label).mean()
        log = at_label(self.log_head(hidden[batch.row], batch.annotator), batch.label)
        annotators = torch.unique(batch.annotator)
        weight = self.mixture(annotators)[:, 0].softmax(dim=0)
        own = torch.einsum("j,jkd->kd", weight, self.own(annotators).detach())
        hidden = hidden.detach()
        common = self.classifier.head(hidden).detach()
        mixed = (common + apply(hidden, own[:, :-1], own[:, -1])).log_softmax(dim=-1)
        mixing = at_label(mixed[batch.row], batch.label)
        return self.penalty(batch.annotator) - log.mean() - mixing.mean()

    def begin(self, examples: Examples, epoch: int) -> None:
        super().begin(examples, epoch)
        if not self.warming:
            posterior = self.log_classes(examples).double().exp().cpu().numpy()
            pooled = self.settings.pooled
            log_confusion = log_count_confusion(examples.annotations, posterior, pooled)
            self.log_counted.copy_(log_confusion)

    def log_given(self, pairs: PairBatch) -> Tensor:
        return self.log_head(self.classifier.body(pairs.vector), pairs.annotator)

    def log_confusion(self, annotator: Tensor, vector: Tensor) -> Tensor:
        return self.log_counted[annotator]

    def penalty(self, annotator: Tensor) -> Tensor:
        return self.gaussian_prior(self.own(annotator), annotator, self.settings.spread)


@dataclass(frozen=True, kw_only=True)
class DoctorNet(LearningMethod):
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
