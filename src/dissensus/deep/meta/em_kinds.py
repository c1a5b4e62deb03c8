"""EM on embeddings with a mixture of kinds of annotators: some know, some guess."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ...params import Count
from .em import AnnotatorModel, Em, EmSettings
from .em_full import expected_counts
from .em_one_coin import coin_matrix, right_and_wrong
from .items import Items

# Initial kinds: those who guess, those who often know, those who nearly always do.
_SKILL, _CONCENTRATION, _SHARE = (0.01, 0.5, 0.9), (50.0, 5.0, 20.0), (0.4, 0.2, 0.4)


class KindParams(NamedTuple):
    """The variational posterior of every annotator."""

    log_kind: Tensor  # (episode, annotator, kind)
    more: Tensor  # (episode, annotator, kind): of the Beta of the accuracy
    less: Tensor  # (episode, annotator, kind)
    n_classes: int


class Kinds(AnnotatorModel):
    """Annotators of a few kinds, each with their own accuracy."""

    def __init__(self) -> None:
        super().__init__()
        self.logit_skill = nn.Parameter(torch.tensor(_SKILL).logit())
        self.log_concentration = nn.Parameter(torch.tensor(_CONCENTRATION).log())
        self.log_share = nn.Parameter(torch.tensor(_SHARE).log())

    def prior(self, n_classes: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log-shares of kinds, and their Betas: (kind) each."""
        accuracy = 1 / n_classes + (1 - 1 / n_classes) * self.logit_skill.sigmoid()
        concentration = self.log_concentration.exp()
        log_share = self.log_share.log_softmax(dim=0)
        return log_share, concentration * accuracy, concentration * (1 - accuracy)

    def update(self, items: Items, posterior: Tensor, last: object) -> KindParams:
        right, wrong = right_and_wrong(expected_counts(items, posterior))
        log_share, more, less = self.prior(items.n_classes)
        after = more + right[:, :, None], less + wrong[:, :, None]
        log_kind = (log_share + _log_beta(*after) - _log_beta(more, less)).log_softmax(dim=2)
        return KindParams(log_kind, *after, items.n_classes)

    def log_given(self, params: KindParams) -> Tensor:
        kind, total = params.log_kind.exp(), (params.more + params.less).digamma()
        right = (kind * (params.more.digamma() - total)).sum(dim=2)
        wrong = (kind * (params.less.digamma() - total)).sum(dim=2)
        return coin_matrix(right, wrong - log(max(params.n_classes - 1, 1)), params.n_classes)

    def log_prior(self, params: KindParams) -> Tensor:
        log_share, more, less = self.prior(params.n_classes)
        total = (params.more + params.less).digamma()
        divergence = (
            _log_beta(more, less)
            - _log_beta(params.more, params.less)
            + (params.more - more) * (params.more.digamma() - total)
            + (params.less - less) * (params.less.digamma() - total)
        )  # (episode, annotator, kind): Kullback–Leibler
        bound = params.log_kind.exp() * (log_share - params.log_kind - divergence)
        return bound.sum(dim=(1, 2))

    def confusion(self, params: KindParams) -> Tensor:
        right = (params.log_kind.exp() * params.more / (params.more + params.less)).sum(dim=2)
        wrong = (1 - right) / max(params.n_classes - 1, 1)
        return coin_matrix(right, wrong, params.n_classes).transpose(2, 3)


def _log_beta(more: Tensor, less: Tensor) -> Tensor:
    return more.lgamma() + less.lgamma() - (more + less).lgamma()


@dataclass(frozen=True, kw_only=True)
class EmKinds(EmSettings):
    """EM on embeddings, annotators of a few kinds: those who know and those who guess.

    EM on embeddings with a mixture of kinds of annotators: some know, some guess.

    Annotator r is of kind g with probability share[g]. An annotator of kind g is right with a
    probability drawn from Beta(more[g], less[g]), whatever the true class, and errors are uniform.
    A kind has a skill, from 0 (guessing) to 1, and a concentration:

        accuracy[g] = 1/K + (1 − 1/K) skill[g]
        more[g], less[g] = concentration[g] · (accuracy[g], 1 − accuracy[g])

    All of these are meta-learned with the embedding: the source tasks show how many annotators
    guess. Kind and accuracy of an annotator are not point estimates but distributions. With
    right[r] and wrong[r] the expected counts of right and wrong labels,

        q(g)     ∝ share[g] B(more[g] + right[r], less[g] + wrong[r]) / B(more[g], less[g])
        q(p | g) = Beta(more[g] + right[r], less[g] + wrong[r])

    and the E step takes log p as expected under q. This is variational EM; its objective, the
    evidence lower bound in the annotators, never falls.

    When it fails: Where annotators differ gradually rather than in kinds, or where the crowd of the
    target is of another mixture than those of the source tasks.
    """

    steps: Count = 5

    def build(self, width: int, n_classes: int) -> Em:
        return Em(Kinds(), self)
