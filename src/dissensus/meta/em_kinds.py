"""EM on embeddings with annotators of a few kinds: some know, some guess.

Annotator r is of kind g with probability usual[g]. Somebody of kind g is right with a probability
that is drawn from Beta(more[g], less[g]), whatever is true, and errs evenly. A kind is told by its
skill, from 0 (as good as a guess) to 1, and by how much its members are alike:

    chance[g] = 1/K + (1 − 1/K) skill[g]
    more[g], less[g] = alike[g] · (chance[g], 1 − chance[g])

All of these are learned with the embedding: it is the crowd of the source tasks that tells how many
guess. Kind and coin of an annotator are not fixed to a point, but kept as a distribution. With
right[r] and wrong[r] the labels that are expected to be right and wrong,

    q(g)     ∝ usual[g] B(more[g] + right[r], less[g] + wrong[r]) / B(more[g], less[g])
    q(p | g) = Beta(more[g] + right[r], less[g] + wrong[r])

and the E step takes log p as expected under q. This is variational EM; its objective, the evidence
lower bound in the annotators, never falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .em import Annotators, Em, MapRule
from .em_full import counted
from .em_one_coin import coin_matrix, rights
from .items import Items

__all__ = ["Believed", "EmKinds", "Kinds"]

# Where kinds begin: those who guess, those who often know, those who nearly always do.
_SKILL, _ALIKE, _USUAL = (0.01, 0.5, 0.9), (50.0, 5.0, 20.0), (0.4, 0.2, 0.4)


class Believed(NamedTuple):
    """What is believed of every annotator."""

    log_kind: Tensor  # (episode, annotator, kind)
    more: Tensor  # (episode, annotator, kind): of the Beta of being right
    less: Tensor  # (episode, annotator, kind)
    n_classes: int


class Kinds(Annotators):
    """Annotators of a few kinds, each with a coin of their own."""

    def __init__(self) -> None:
        super().__init__()
        skill = torch.tensor(_SKILL)
        self.logit_skill = nn.Parameter((skill / (1 - skill)).log())
        self.log_alike = nn.Parameter(torch.tensor(_ALIKE).log())
        self.log_usual = nn.Parameter(torch.tensor(_USUAL).log())

    def prior(self, n_classes: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the log-shares of kinds, and their Betas: (kind) each."""
        chance = 1 / n_classes + (1 - 1 / n_classes) * self.logit_skill.sigmoid()
        alike = self.log_alike.exp()
        return self.log_usual.log_softmax(dim=0), alike * chance, alike * (1 - chance)

    def update(self, items: Items, posterior: Tensor, last: Believed | None) -> Believed:
        right, wrong = rights(counted(items, posterior))
        log_usual, more, less = self.prior(items.n_classes)
        after = more + right[:, :, None], less + wrong[:, :, None]
        log_kind = (log_usual + _log_beta(*after) - _log_beta(more, less)).log_softmax(dim=2)
        return Believed(log_kind, *after, items.n_classes)

    def log_given(self, crowd: Believed) -> Tensor:
        kind, total = crowd.log_kind.exp(), (crowd.more + crowd.less).digamma()
        right = (kind * (crowd.more.digamma() - total)).sum(dim=2)
        wrong = (kind * (crowd.less.digamma() - total)).sum(dim=2)
        return coin_matrix(right, wrong - log(max(crowd.n_classes - 1, 1)), crowd.n_classes)

    def log_prior(self, crowd: Believed) -> Tensor:
        log_usual, more, less = self.prior(crowd.n_classes)
        total = (crowd.more + crowd.less).digamma()
        coin = (
            _log_beta(more, less)
            - _log_beta(crowd.more, crowd.less)
            + (crowd.more - more) * (crowd.more.digamma() - total)
            + (crowd.less - less) * (crowd.less.digamma() - total)
        )  # (episode, annotator, kind): Kullback–Leibler divergences
        gain = crowd.log_kind.exp() * (log_usual - crowd.log_kind - coin)
        return gain.sum(dim=(1, 2))

    def confusion(self, crowd: Believed) -> Tensor:
        right = (crowd.log_kind.exp() * crowd.more / (crowd.more + crowd.less)).sum(dim=2)
        wrong = (1 - right) / max(crowd.n_classes - 1, 1)
        return coin_matrix(right, wrong, crowd.n_classes).transpose(2, 3)


def _log_beta(more: Tensor, less: Tensor) -> Tensor:
    return more.lgamma() + less.lgamma() - (more + less).lgamma()


@dataclass(frozen=True, kw_only=True)
class EmKinds(MapRule):
    """EM on embeddings, annotators of a few kinds: those who know and those who guess."""

    steps: int = 5

    def build(self, width: int, n_classes: int) -> Em:
        return Em(self.classes(), Kinds(), self)
