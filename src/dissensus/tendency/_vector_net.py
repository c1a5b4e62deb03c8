"""Networks over the items' vectors: what the deep baselines share.

A `VectorNet` gives the log-probability of every label from the vector of the item and the code of
the annotator. Loss, training, choice of the epoch and storage live here; a method's file holds its
formulas.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor, nn

from .._relation import Floats, Integers
from ..annotations import Annotations
from ..errors import DataError
from ..nn.batches import Batch, Examples
from ..nn.learner import Learner
from ..nn.training import Training, train
from ..nn.validation_split import hold_out
from ..params import Count, NonNegative, Positive, Probability
from ._base import How, State, Tendency, TendencyMethod, Views
from ._views import standardised

__all__ = ["NetworkMethod", "NetworkTendency", "Sizes", "VectorNet", "body"]

_PAIRS = 2**14  # asked together


class Sizes(NamedTuple):
    """How large a network has to be."""

    features: int
    n_annotators: int
    n_classes: int


class VectorNet(Learner):
    """A network that says what an annotator says of a vector."""

    mean: Tensor  # (feature)
    scale: Tensor  # (feature)

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.register_buffer("mean", torch.zeros(sizes.features))
        self.register_buffer("scale", torch.ones(sizes.features))

    @abstractmethod
    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        """Return log-probabilities of labels: (pair, class).

        Parameters
        ----------
        x
            Scaled vectors: (item, feature).
        row
            The item of every pair, by its place among them.
        annotator
            The annotator of every pair.
        """

    def start(self, annotations: Annotations) -> None:
        """Begin with what labels tell before anything is learned."""

    def scaled(self, x: Tensor) -> Tensor:
        """Return vectors of mean zero and spread one: (item, feature)."""
        return (x - self.mean) * self.scale

    def log_batch(self, batch: Batch) -> Tensor:
        """Return log-probabilities of labels in a batch: (annotation, class)."""
        return self.log_given(self.scaled(batch.x), batch.row, batch.annotator)

    def loss(self, batch: Batch) -> Tensor:
        return -self.log_batch(batch).gather(1, batch.label[:, None]).mean()

    def log_probability(self, batch: Batch) -> Tensor:
        return self.log_batch(batch).gather(1, batch.label[:, None])[:, 0]


def body(features: int, hidden: int, dropout: float) -> nn.Sequential:
    """Return one hidden layer, shared by all annotators."""
    return nn.Sequential(
        nn.Dropout(dropout), nn.Linear(features, hidden), nn.ReLU(), nn.Dropout(dropout)
    )


class NetworkTendency(Tendency):
    """A trained network."""

    def __init__(self, net: VectorNet, seed: int) -> None:
        self.net, self.seed = net.eval(), seed
        self.n_annotators, self.n_classes = net.sizes.n_annotators, net.sizes.n_classes

    @torch.inference_mode()
    def log_probability(self, views: Views, item: Integers, annotator: Integers) -> Floats:
        if views.vectors.shape[1] != self.net.sizes.features:
            raise DataError(
                f"vectors of {views.vectors.shape[1]} features, but the model has learned from "
                f"{self.net.sizes.features}"
            )
        item, annotator = np.asarray(item), np.asarray(annotator, dtype=np.int64)
        out = np.empty((len(item), self.n_classes))
        with torch.random.fork_rng(devices=[]):
            for at in range(0, len(item), _PAIRS):
                here = slice(at, at + _PAIRS)
                torch.manual_seed(self.seed)
                items, row = np.unique(item[here], return_inverse=True)
                x = self.net.scaled(torch.from_numpy(views.vectors[items]))
                who = torch.from_numpy(annotator[here])
                log = self.net.log_given(x, torch.from_numpy(row), who).double()
                out[here] = log.log_softmax(dim=1).numpy()
        return out

    def state(self) -> State:
        arrays = {name: value.cpu().numpy() for name, value in self.net.state_dict().items()}
        return State({"sizes": list(self.net.sizes), "seed": self.seed}, arrays)


@dataclass(frozen=True, kw_only=True)
class NetworkMethod(TendencyMethod):
    """What networks over vectors have in common.

    Parameters
    ----------
    hidden
        Width of the hidden layer.
    dropout
        Share of vector and hidden layer that is left out in every step.
    epochs
        How often every item is seen, at most.
    batch
        Items per step.
    lr
        Learning rate at its highest.
    decay
        Weight decay.
    patience
        Epochs without a better one before training ends.
    held_out
        Share of items held out, whose annotations choose the epoch.
    """

    hidden: Count = 128
    dropout: Probability = 0.3
    epochs: Count = 60
    batch: Count = 32
    lr: Positive = 1e-3
    decay: NonNegative = 0.01
    patience: Annotated[int, Ge(0)] = 8
    held_out: Probability = 0.1

    @abstractmethod
    def build(self, sizes: Sizes) -> VectorNet:
        """Return the network to train."""

    def learn(self, views: Views, annotations: Annotations, how: How) -> NetworkTendency:
        examples = Examples(torch.from_numpy(views.vectors), annotations)
        held: Examples | None = None
        if self.held_out and examples.n_labelled > 1:
            examples, held = hold_out(examples, self.held_out, how.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(how.seed)
            net = self.build(
                Sizes(views.vectors.shape[1], annotations.n_annotators, annotations.n_classes)
            )
            mean, scale = standardised(views.vectors)
            net.mean.copy_(torch.from_numpy(mean))
            net.scale.copy_(torch.from_numpy(scale))
            net.start(examples.annotations)
            train(
                net,
                examples,
                self.training(how.seed),
                valid=held if held is not None and held.n_labelled else None,
                folder=how.folder,
                resume=how.resume,
                progress=how.progress,
            )
        net.start(annotations)
        return NetworkTendency(net, how.seed)

    def training(self, seed: int) -> Training:
        """Return how the network is trained."""
        return Training(
            epochs=self.epochs,
            batch=self.batch,
            optimizer="adamw",
            lr=self.lr,
            decay=self.decay,
            patience=self.patience,
            held_out=0.0,
            seed=seed,
        )

    def restore(self, state: State) -> NetworkTendency:
        net = self.build(Sizes(*state.notes["sizes"]))
        net.load_state_dict({name: torch.tensor(value) for name, value in state.arrays.items()})
        return NetworkTendency(net, state.notes["seed"])
