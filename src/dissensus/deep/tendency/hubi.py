"""HuBi (Kocoń et al. 2021): human bias as a bias, as an embedding, or as a formula.

    simple    W₂ softplus(W₁ x) + b[k]
    medium    W₂ (softplus(W₁ x) · softplus(W₃ e[k]))
    formula   W₂ [softplus(W₁ x), s[k]],   s[k, c] = (share of c among k's labels − mean) / std

Biases b start within ±.001, embeddings e within ±.01. Mean and standard deviation of the formula
are those of the shares over annotators.

When it fails: A bias (`simple`) or marginals (`formula`) cannot express a taste; an embedding
(`medium`) can, and overfits below tens of labels per annotator.

    J. Kocoń et al. Learning personal human biases and representations for subjective tasks in
    natural language processing. ICDM 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ...answers.annotations import Annotations
from ..nn.tables import Table
from ...params import Count, Probability
from .vector_networks import NetworkMethod, Sizes, VectorNet
from .own_majority import label_marginals


class _Net(VectorNet):
    """The hidden layer of the item and the output layer."""

    def __init__(self, sizes: Sizes, method: NetworkMethod, width: int | None = None) -> None:
        super().__init__(sizes, method)
        self.drop = nn.Dropout(method.dropout)
        self.first = nn.Linear(sizes.n_features, method.hidden)
        self.last = nn.Linear(width or method.hidden, sizes.n_classes)

    def hidden(self, x: Tensor) -> Tensor:
        """Return the hidden layer: (item, hidden)."""
        return self.drop(softplus(self.first(self.drop(x))))


class SimpleNet(_Net):
    """A bias per annotator."""

    def __init__(self, sizes: Sizes, method: HubiSimple) -> None:
        super().__init__(sizes, method)
        self.bias = Table(0.002 * torch.rand(sizes.n_annotators, sizes.n_classes) - 0.001)

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        return (self.last(self.hidden(x))[row] + self.bias(annotator)).log_softmax(dim=1)


class MediumNet(_Net):
    """An embedding per annotator that gates the hidden layer."""

    def __init__(self, sizes: Sizes, method: HubiMedium) -> None:
        super().__init__(sizes, method)
        self.embedding = Table(0.02 * torch.rand(sizes.n_annotators, method.width) - 0.01)
        self.drop_embedding = nn.Dropout(method.embedding_dropout)
        self.map = nn.Linear(method.width, method.hidden)

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        gate = softplus(self.map(self.drop_embedding(self.embedding(annotator))))
        return self.last(self.hidden(x)[row] * gate).log_softmax(dim=1)


class FormulaNet(_Net):
    """Label marginals of the annotator, concatenated to the hidden layer."""

    marginals: Tensor  # (annotator, class)

    def __init__(self, sizes: Sizes, method: HubiFormula) -> None:
        super().__init__(sizes, method, method.hidden + sizes.n_classes)
        self.register_buffer("marginals", torch.zeros(sizes.n_annotators, sizes.n_classes))

    def start(self, annotations: Annotations) -> None:
        marginals = torch.from_numpy(label_marginals(annotations))
        std = marginals.std(dim=0, unbiased=False).clamp(min=1e-6)
        self.marginals.copy_((marginals - marginals.mean(dim=0)) / std)

    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        both = torch.cat([self.hidden(x)[row], self.marginals[annotator]], dim=1)
        return self.last(both).log_softmax(dim=1)


@dataclass(frozen=True, kw_only=True)
class HubiSimple(NetworkMethod):
    """A bias per annotator on a shared hidden layer."""

    network = SimpleNet

    hidden: Count = 100


@dataclass(frozen=True, kw_only=True)
class HubiMedium(NetworkMethod):
    """An embedding per annotator, multiplied with the hidden layer of the item.

    Parameters
    ----------
    width
        Width of the embeddings.
    embedding_dropout
        Dropout of the embeddings.
    """

    network = MediumNet

    hidden: Count = 100
    width: Count = 20
    embedding_dropout: Probability = 0.2


@dataclass(frozen=True, kw_only=True)
class HubiFormula(NetworkMethod):
    """Label marginals of the annotator, concatenated to the hidden layer of the item."""

    network = FormulaNet

    hidden: Count = 100
