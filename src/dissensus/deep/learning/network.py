"""The classifier that every method trains: an encoder, one hidden layer, one linear head.

The encoder turns an input into a vector; for features it is the identity. Vectors are standardized
by the training items, so that one learning rate and one dropout fit all data. Methods that depend
on the item (CoNAL, MaDL, CrowdAR) use the vector, without gradients into the encoder.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Self

import torch
from annotated_types import Ge
from torch import Tensor, nn

from ..nn.encoding import Encoding
from ..nn.standardize import standardization
from ...params import Probability, Settings


@dataclass(frozen=True, kw_only=True)
class Network(Settings):
    """The layers above the encoder.

    Parameters
    ----------
    hidden
        Width of the hidden layer; 0 for none.
    dropout
        Dropout of the hidden layer.
    input_dropout
        Dropout of the input vectors.
    """

    hidden: Annotated[int, Ge(0)] = 128
    dropout: Probability = 0.5
    input_dropout: Probability = 0.3


class Classifier(nn.Module):
    """x → logits of the classes.

    Parameters
    ----------
    encoder
        x → vector.
    width
        Number of features of a vector.
    n_classes
        Number of classes.
    hidden
        Width of the hidden layer; 0 for none, which makes it softmax regression.
    dropout
        Dropout of the hidden layer.
    input_dropout
        Dropout of the vector.
    """

    mean: Tensor  # (feature)
    scale: Tensor  # (feature)

    def __init__(
        self,
        encoder: nn.Module,
        width: int,
        n_classes: int,
        hidden: int = 128,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.width = width
        self.hidden_width = hidden or width
        layers: list[nn.Module] = [nn.Dropout(input_dropout)]
        if hidden:
            layers += [nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(dropout)]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(self.hidden_width, n_classes)
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    @classmethod
    def of(cls, encoding: Encoding, vectors: Tensor, n_classes: int, network: Network) -> Self:
        """Return a new classifier, scaled by the vectors of some items."""
        classifier = cls(encoding.network(), vectors.shape[1], n_classes, **asdict(network))
        classifier.fit_scale(vectors)
        return classifier

    def fit_scale(self, vectors: Tensor) -> None:
        """Scale by the mean and the spread of these vectors; what never varies becomes zero."""
        mean, scale = standardization(vectors)
        self.mean.copy_(mean)
        self.scale.copy_(scale)

    def encode(self, x: Tensor) -> Tensor:
        """Return the scaled vectors: (item, feature)."""
        return (self.encoder(x) - self.mean) * self.scale

    def log_truth(self, vector: Tensor) -> Tensor:
        """Return log-probabilities of the classes: (item, class)."""
        return self.head(self.body(vector)).log_softmax(dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.encode(x)))


def linear(width: int, out: int, spread: float) -> nn.Linear:
    """Return a linear layer whose weights begin small and whose bias begins at zero."""
    layer = nn.Linear(width, out)
    nn.init.normal_(layer.weight, std=spread)
    nn.init.zeros_(layer.bias)
    return layer
