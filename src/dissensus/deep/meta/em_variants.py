"""EM on embeddings with item-dependent confusion: on some items every annotator guesses."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from ...params import Probability
from .em import AnnotatorModel, Em, safe_log
from .em_full import ConfusionMatrices, EmFull
from .items import Items, normalize


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
            given = last.flatten(0, 2)[items.code]
            log_informed = log_informed + given - self._log_label(last, items)
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
        given = logsigmoid(-logit) + params.flatten(0, 2)[items.code]
        return torch.logaddexp(given, logsigmoid(logit) - log(items.n_classes))


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
