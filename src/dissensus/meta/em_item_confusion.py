"""EM on embeddings with confusion that depends on the item: some items fool everybody.

The embedding of an item tells how likely it fools whoever looks at it; fooled, people guess:

    fooled[n] = sigmoid(w · u[n] + w0)
    P(r says l of n | t = k) = (1 − fooled[n]) given[r, l, k] + fooled[n] / K

w is learned with the embedding. Whether an annotator was fooled is hidden like the truth, which
keeps the closed forms: with

    sober[n, r, k] = (1 − fooled[n]) given[r, l, k] / P(r says l of n | t = k)

labels count for an annotator's matrix by posterior[n, k] · sober[n, r, k]. The objective never
falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from ..params import Positive, Probability
from .em import Annotators, Em, MapRule, logs
from .em_full import Confusions
from .items import Items, share

__all__ = ["EmFooled", "Fooled"]


class Seen(NamedTuple):
    """What is learned of the annotators, for the items they were seen with."""

    log_given: Tensor  # (episode, annotator, given, true): of those who are not fooled


class Fooled(Annotators):
    """Confusion matrices of annotators who are sometimes fooled."""

    def __init__(self, width: int, c: float, right: float, fooled: float) -> None:
        super().__init__()
        self.matrices = Confusions(c, right)
        self.weight = nn.Parameter(torch.zeros(width))
        self.bias = nn.Parameter(torch.tensor(log(fooled / (1 - fooled))))

    def update(self, items: Items, posterior: Tensor, last: Seen | None) -> Seen:
        log_sober = logsigmoid(-self._hardness(items))[:, None]  # (annotation, 1)
        if last is not None:
            log_sober = log_sober + self._sober(last, items) - self.log_given_labels(last, items)
        annotations = items.by_annotations(items.per_annotation(posterior) * log_sober.exp())
        return Seen(logs(share(annotations + self.matrices.pseudo(items.n_classes), dim=2)))

    def log_given_labels(self, crowd: Seen, items: Items) -> Tensor:
        hard = self._hardness(items)[:, None]
        guess = logsigmoid(hard) - log(items.n_classes)
        return torch.logaddexp(logsigmoid(-hard) + self._sober(crowd, items), guess)

    def log_given(self, crowd: Seen) -> Tensor:
        return crowd.log_given

    def log_prior(self, crowd: Seen) -> Tensor:
        return self.matrices.log_prior(crowd.log_given)

    def _hardness(self, items: Items) -> Tensor:
        """Return the log-odds that whoever labels is fooled: (annotation)."""
        return items.per_annotation(items.u @ self.weight + self.bias)

    def _sober(self, crowd: Seen, items: Items) -> Tensor:
        return crowd.log_given.flatten(0, 2)[items.annotations]


@dataclass(frozen=True, kw_only=True)
class EmFooled(MapRule):
    """EM on embeddings, where the embedding tells which items fool everybody.

    Parameters
    ----------
    c
        Pseudo-count of every label, whatever is true.
    right
        More pseudo-counts of the right label.
    fooled
        How often an average item fools its annotators, at the start of training.
    """

    c: Positive = 0.1
    right: Positive = 1.0
    fooled: Probability = 0.1

    def build(self, width: int, n_classes: int) -> Em:
        return Em(self.classes(), Fooled(width, self.c, self.right, self.fooled), self)
