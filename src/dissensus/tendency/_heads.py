"""From what a query found to labels: classifiers of each annotator's own, shared, or both.

    own      a network per annotator
    shared   one for all; only the queries tell annotators apart
    bias     what all share, and a bias of one's own
    shrunk   what all share plus a linear part and a bias of one's own, drawn towards zero

Networks have one hidden layer, or none. Weights of annotators are rows of a `Table`: a step costs
what the annotators in it cost, and one more annotator adds a row and nothing else.

Labels in an order get one score and thresholds instead of a number for every class:

    P(label ≤ c) = sigmoid(threshold[c] − score)
    threshold[c] = threshold[c − 1] + softplus(gap[c])
"""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..nn.tables import Table
from ._slots import slots

__all__ = [
    "BiasHeads",
    "Heads",
    "OrdinalHeads",
    "OwnHeads",
    "SharedHeads",
    "ShrunkHeads",
    "gaps_of",
]

_LEAST = 1e-3  # between two thresholds


class Heads(nn.Module):
    """Vectors and annotators to numbers: (pair, width), (pair) → (pair, out)."""

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        """Return the numbers of every pair."""
        raise NotImplementedError

    def own(self) -> list[Tensor]:
        """Return the parameters that are drawn towards zero."""
        return []


class SharedHeads(Heads):
    """One network for all annotators."""

    def __init__(self, width: int, hidden: int, out: int, *, zero: bool = False) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Linear(width, hidden), nn.GELU()] if hidden else []
        last = nn.Linear(hidden or width, out)
        if zero:
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
        self.body = nn.Sequential(*layers, last)

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        return self.body(x)


class OwnHeads(Heads):
    """A network per annotator."""

    def __init__(
        self, n_annotators: int, width: int, hidden: int, out: int, *, zero: bool = False
    ) -> None:
        super().__init__()
        sizes = [width, hidden, out] if hidden else [width, out]
        self.weights = nn.ModuleList()
        self.biases = nn.ModuleList()
        for position, (wide, narrow) in enumerate(pairwise(sizes)):
            limit = 0.0 if zero and position == len(sizes) - 2 else 1 / sqrt(wide)
            start = torch.empty(n_annotators, wide + 1, narrow).uniform_(-limit, limit)
            self.weights.append(Table(start[:, :-1]))  # (annotator, from, to)
            self.biases.append(Table(start[:, -1]))  # (annotator, to)

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        laid = slots(annotator)
        x = laid.lay(x)  # (row, slot, from)
        for position, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = functional.gelu(x) if position else x
            x = torch.baddbmm(bias(laid.owner)[:, None], x, weight(laid.owner))
        return laid.pick(x)


class BiasHeads(Heads):
    """One network for all, and a bias of every annotator's own."""

    def __init__(
        self, n_annotators: int, width: int, hidden: int, out: int, *, zero: bool = False
    ) -> None:
        super().__init__()
        self.shared = SharedHeads(width, hidden, out, zero=zero)
        self.bias = Table(torch.zeros(n_annotators, out))

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        return self.shared(x, annotator) + self.bias(annotator)


class ShrunkHeads(BiasHeads):
    """One network for all, and a linear part and a bias of every annotator's own."""

    def __init__(
        self, n_annotators: int, width: int, hidden: int, out: int, *, zero: bool = False
    ) -> None:
        super().__init__(n_annotators, width, hidden, out, zero=zero)
        self.weight = Table(torch.zeros(n_annotators, width, out))

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        laid = slots(annotator)
        own = torch.bmm(laid.lay(x), self.weight(laid.owner))
        return super().forward(x, annotator) + laid.pick(own)

    def own(self) -> list[Tensor]:
        return [self.weight.weight]


class OrdinalHeads(Heads):
    """One score, and thresholds that cut it into labels: log-probabilities (pair, class)."""

    def __init__(self, score: Heads, gaps: Tensor, n_annotators: int, *, own: bool) -> None:
        super().__init__()
        self.score = score
        self.gaps = nn.Parameter(gaps.clone())  # (class − 1)
        self.own_gaps = Table(torch.zeros(n_annotators, len(gaps))) if own else None

    def forward(self, x: Tensor, annotator: Tensor) -> Tensor:
        gaps = self.gaps.expand(len(x), -1)
        if self.own_gaps is not None:
            gaps = gaps + self.own_gaps(annotator)
        steps = torch.cat([gaps[:, :1], functional.softplus(gaps[:, 1:]) + _LEAST], dim=1)
        above = steps.cumsum(dim=1) - self.score(x, annotator)  # (pair, class − 1)
        at_most = functional.logsigmoid(above)
        more = functional.logsigmoid(-above)
        # σ(a) − σ(b) = σ(a) σ(−b) (1 − exp(b − a))
        between = at_most[:, 1:] + more[:, :-1] + torch.log(-torch.expm1(-steps[:, 1:]))
        return torch.cat([at_most[:, :1], between, more[:, -1:]], dim=1)

    def own(self) -> list[Tensor]:
        mine = [] if self.own_gaps is None else [self.own_gaps.weight]
        return [*self.score.own(), *mine]


def gaps_of(counts: Tensor) -> Tensor:
    """Return gaps whose thresholds give classes the shares of these counts, at score zero.

    >>> gaps_of(torch.tensor([1.0, 1.0]))
    tensor([0.])
    """
    share = (counts.cumsum(dim=0)[:-1] + 0.5) / (counts.sum() + 1)
    steps = torch.diff(torch.logit(share), prepend=torch.zeros(1))
    rest = (steps[1:] - _LEAST).clamp(min=1e-2)
    return torch.cat([steps[:1], torch.log(torch.expm1(rest))])
