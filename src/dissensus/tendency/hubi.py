"""HuBi (Kocoń et al. 2021): human bias as a bias, as an embedding, or as a formula.

    simple    W₂ softplus(W₁ x) + b[k]
    medium    W₂ (softplus(W₁ x) · softplus(W₃ e[k]))
    formula   W₂ [softplus(W₁ x), s[k]],   s[k, c] = (share of c among k's labels − mean) / spread

Biases b begin within ±.001, embeddings e within ±.01. Mean and spread of the formula are those of
the shares over annotators.

    J. Kocoń et al. Learning personal human biases and representations for subjective tasks in
    natural language processing. ICDM 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ..annotations import Annotations
from ..nn.tables import Table
from ..params import Count, Probability
from ._vector_net import NetworkMethod, Sizes, VectorNet
from .own_majority import habits

__all__ = ["HubiFormula", "HubiMedium", "HubiSimple"]


class _Net(VectorNet):
    """What the three share: the item's side."""

    def __init__(self, sizes: Sizes, method: NetworkMethod, width: int | None = None) -> None:
        super().__init__(sizes)
        self.drop = nn.Dropout(method.dropout)
        self.first = nn.Linear(sizes.features, method.hidden)
        self.last = nn.Linear(width or method.hidden, sizes.n_classes)

    def item(self, x: Tensor) -> Tensor:
        """Return what is seen in items: (item, hidden)."""
        return self.drop(softplus(self.first(self.drop(x))))


class SimpleNet(_Net):
    """A bias per annotator."""

    def __init__(self, sizes: Sizes, method: HubiSimple) -> None:
        super().__init__(sizes, method)
        self.bias = Table(0.002 * torch.rand(sizes.n_annotators, sizes.n_classes) - 0.001)

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        return (self.last(self.item(x))[row] + self.bias(annotator)).log_softmax(dim=1)


class MediumNet(_Net):
    """An embedding per annotator, which decides what counts of an item."""

    def __init__(self, sizes: Sizes, method: HubiMedium) -> None:
        super().__init__(sizes, method)
        self.embedding = Table(0.02 * torch.rand(sizes.n_annotators, method.width) - 0.01)
        self.drop_embedding = nn.Dropout(method.embedding_dropout)
        self.map = nn.Linear(method.width, method.hidden)

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        counts = softplus(self.map(self.drop_embedding(self.embedding(annotator))))
        return self.last(self.item(x)[row] * counts).log_softmax(dim=1)


class FormulaNet(_Net):
    """Habits of annotators, beside the item."""

    habit: Tensor  # (annotator, class)

    def __init__(self, sizes: Sizes, method: HubiFormula) -> None:
        super().__init__(sizes, method, method.hidden + sizes.n_classes)
        self.register_buffer("habit", torch.zeros(sizes.n_annotators, sizes.n_classes))

    def start(self, annotations: Annotations) -> None:
        habit = torch.from_numpy(habits(annotations, 2.0))
        spread = habit.std(dim=0, unbiased=False).clamp(min=1e-6)
        self.habit.copy_((habit - habit.mean(dim=0)) / spread)

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        both = torch.cat([self.item(x)[row], self.habit[annotator]], dim=1)
        return self.last(both).log_softmax(dim=1)


@dataclass(frozen=True, kw_only=True)
class HubiSimple(NetworkMethod):
    """A bias per annotator over a hidden layer that all share."""

    hidden: Count = 100

    def build(self, sizes: Sizes) -> SimpleNet:
        return SimpleNet(sizes, self)


@dataclass(frozen=True, kw_only=True)
class HubiMedium(NetworkMethod):
    """An embedding per annotator, multiplied with what is seen in the item.

    Parameters
    ----------
    width
        Length of the embeddings.
    embedding_dropout
        Share of an embedding that is left out in every step.
    """

    hidden: Count = 100
    width: Count = 20
    embedding_dropout: Probability = 0.2

    def build(self, sizes: Sizes) -> MediumNet:
        return MediumNet(sizes, self)


@dataclass(frozen=True, kw_only=True)
class HubiFormula(NetworkMethod):
    """Habits of annotators beside what is seen in the item."""

    hidden: Count = 100

    def build(self, sizes: Sizes) -> FormulaNet:
        return FormulaNet(sizes, self)
