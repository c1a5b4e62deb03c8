"""Models of annotators for EM on embeddings, beside one confusion matrix each.

Annotators may all guess on some items, have one accuracy each, or be of a few kinds, of which some
know and some guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from ...params import Count, Probability
from .base import log_parameter
from .em import AnnotatorModel, ConfusionMatrices, Em, EmFull, EmSettings, expected_counts, safe_log
from .episodes import Items, normalize

# Initial kinds: those who guess, those who often know, those who nearly always do.
_SKILL, _CONCENTRATION, _SHARE = (0.01, 0.5, 0.9), (50.0, 5.0, 20.0), (0.4, 0.2, 0.4)


class ItemConfusion(AnnotatorModel):
    """Confusion matrices of annotators who guess on some items; the parameters are logarithms."""

    def __init__(self, width: int, c: float, right: float, guess: float) -> None:
        super().__init__()
        self.matrices = ConfusionMatrices(c, right)
        self.weight = nn.Parameter(torch.zeros(width))
        self.bias = nn.Parameter(torch.tensor(log(guess / (1 - guess))))

    def update(self, items: Items, posterior: Tensor, last: Tensor | None) -> Tensor:
        log_informed = logsigmoid(-self._logit(items))  # (annotation, 1)
        if last is not None:
            log_given = last.flatten(0, 2)[items.code]
            log_informed = log_informed + log_given - self._log_label(last, items)
        counts = items.sum_by_label(items.per_annotation(posterior) * log_informed.exp())
        return safe_log(normalize(counts + self.matrices.pseudo_counts(items.n_classes), dim=2))

    def log_likelihood(self, params: Tensor, items: Items) -> Tensor:
        return items.sum_by_item(self._log_label(params, items))

    def log_given(self, params: Tensor) -> Tensor:
        return params

    def log_prior(self, params: Tensor) -> Tensor:
        return self.matrices.log_prior(params)

    def _logit(self, items: Items) -> Tensor:
        """Return the log-odds that a label is a guess: (annotation, 1)."""
        return items.per_annotation(items.u @ self.weight + self.bias)[:, None]

    def _log_label(self, params: Tensor, items: Items) -> Tensor:
        """Return the log-probability of every label by true class: (annotation, true)."""
        logit = self._logit(items)
        log_informed = logsigmoid(-logit) + params.flatten(0, 2)[items.code]
        return torch.logaddexp(log_informed, logsigmoid(logit) - log(items.n_classes))


@dataclass(frozen=True, kw_only=True)
class EmItemConfusion(EmFull):
    """EM on embeddings that predict on which items every annotator guesses.

    EM on embeddings with item-dependent confusion: on some items every annotator guesses.

    The embedding of an item predicts the probability that a label of it is a guess:

        guess[n] = sigmoid(w · u[n] + w0)
        P(r labels n as l | t = k) = (1 − guess[n]) given[r, l, k] + guess[n] / K

    w is meta-learned with the embedding. Whether a label was a guess is a latent variable like the
    truth, which keeps the closed forms: with

        informed[n, r, k] = (1 − guess[n]) given[r, l, k] / P(r labels n as l | t = k)

    labels count for an annotator's matrix by posterior[n, k] · informed[n, r, k]. The objective
    never falls.

    When it fails: What makes an item hard must be visible in its embedding and the same as in the
    source tasks; else every label counts as a guess with one rate.

    Parameters
    ----------
    guess
        Initial probability that a label of an average item is a guess.
    """

    guess: Probability = 0.1

    def build(self, width: int, n_classes: int) -> Em:
        return Em(ItemConfusion(width, self.c, self.right, self.guess), self)


class AccuracyParams(NamedTuple):
    """Log-probabilities of right labels and of each wrong one."""

    log_right: Tensor  # (episode, annotator)
    log_wrong: Tensor  # (episode, annotator)
    n_classes: int


class Accuracies(AnnotatorModel):
    """One accuracy per annotator."""

    def __init__(self, c: float, right: float) -> None:
        super().__init__()
        self.log_c, self.log_right = log_parameter(c), log_parameter(right)

    def update(self, items: Items, posterior: Tensor, last: object) -> AccuracyParams:
        right, wrong = right_and_wrong(expected_counts(items, posterior))
        prior_right, prior_wrong = self._pseudo_counts(items.n_classes)
        accuracy = (right + prior_right) / (right + wrong + prior_right + prior_wrong)
        n_wrong = max(items.n_classes - 1, 1)
        return AccuracyParams(
            safe_log(accuracy), safe_log((1 - accuracy) / n_wrong), items.n_classes
        )

    def log_given(self, params: AccuracyParams) -> Tensor:
        return coin_matrix(params.log_right, params.log_wrong, params.n_classes)

    def log_prior(self, params: AccuracyParams) -> Tensor:
        prior_right, prior_wrong = self._pseudo_counts(params.n_classes)
        return (prior_right * params.log_right + prior_wrong * params.log_wrong).sum(dim=1)

    def _pseudo_counts(self, n_classes: int) -> tuple[Tensor, Tensor]:
        """Return the pseudo-counts of right and of wrong labels."""
        c = self.log_c.exp()
        return c + self.log_right.exp(), (n_classes - 1) * c


def right_and_wrong(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return expected counts of right and of wrong labels: (episode, annotator) each."""
    right = counts.diagonal(dim1=2, dim2=3).sum(dim=2)
    return right, (counts.sum(dim=(2, 3)) - right).clamp(min=0)


def coin_matrix(right: Tensor, wrong: Tensor, n_classes: int) -> Tensor:
    """Return matrices of two values each: (episode, annotator, given, true)."""
    eye = torch.eye(n_classes, dtype=torch.bool, device=right.device)
    return torch.where(eye, right[:, :, None, None], wrong[:, :, None, None])


@dataclass(frozen=True, kw_only=True)
class EmOneCoin(EmFull):
    """EM on embeddings, one accuracy per annotator.

    EM on embeddings with one number for every annotator: their accuracy.

    Whatever the true class, annotator r is right with probability accuracy[r]; errors are uniform.

        accuracy[r] = (Σ_k labels[r, k, k] + c + right) / (Σ labels[r] + K c + right)

    With few labels per annotator a full confusion matrix costs more than this simplification does,
    even where errors are not uniform.

    When it fails: Annotators who confuse two particular classes; an embedding that does not
    separate the classes of the target takes the labels of neighbours for evidence.
    """

    steps: Count = 5

    def build(self, width: int, n_classes: int) -> Em:
        return Em(Accuracies(self.c, self.right), self)


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
