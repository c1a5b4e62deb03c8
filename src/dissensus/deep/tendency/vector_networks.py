"""Networks on item vectors: what the deep baselines share.

A `VectorNet` gives the log-probability of every label from the vector of the item and the code of
the annotator. Loss, training, early stopping and state are here; a method's file holds its
formulas.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor, nn

from ...answers.annotations import Annotations, Floats, Integers
from ..nn import Batch, Examples, Features, Learner, Training
from ..nn.checkpoints import load_network, network_state
from ..nn.standardize import Standardize
from ..nn.training import build_and_train
from ...params import Count, NonNegative, Positive, Probability
from .base import FitOptions, State, Tendency, TendencyMethod
from .components import check_width

_PAIRS = 2**14  # predicted at a time
Net = TypeVar("Net", bound=Learner)


class Sizes(NamedTuple):
    """Sizes of a network."""

    n_features: int
    n_annotators: int
    n_classes: int


class VectorNet(Learner):
    """A network from the vector of an item and an annotator to the annotator's label."""

    def __init__(self, sizes: Sizes, method: NetworkMethod) -> None:
        super().__init__()
        self.scaled = Standardize(sizes.n_features)

    @abstractmethod
    def log_given(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        """Return log-probabilities of labels: (pair, class).

        Parameters
        ----------
        x
            Scaled vectors: (item, feature).
        row
            The item of every pair, as a row of `x`.
        annotator
            The annotator of every pair.
        """

    def start(self, annotations: Annotations) -> None:
        """Set buffers that depend on the annotations."""

    def log_batch(self, batch: Batch) -> Tensor:
        """Return log-probabilities of labels in a batch: (annotation, class)."""
        return self.log_given(self.scaled(batch.x), batch.row, batch.annotator)

    def loss(self, batch: Batch) -> Tensor:
        return -self.log_probability(batch).mean()

    def log_probability(self, batch: Batch) -> Tensor:
        return self.log_batch(batch).gather(1, batch.label[:, None])[:, 0]


def hidden_layer(n_features: int, hidden: int, dropout: float) -> nn.Sequential:
    """Return one hidden layer, shared by all annotators."""
    return nn.Sequential(
        nn.Dropout(dropout), nn.Linear(n_features, hidden), nn.ReLU(), nn.Dropout(dropout)
    )


class VectorTendency(Tendency):
    """A trained network on vectors."""

    def __init__(self, net: nn.Module, sizes: Sizes, seed: int = 0) -> None:
        self.net, self.sizes, self.seed = net.eval(), sizes, seed
        self.n_annotators, self.n_classes = sizes.n_annotators, sizes.n_classes

    @abstractmethod
    def log_pairs(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        """Return log-probabilities of labels, for items `x[row]`: (pair, class)."""

    @torch.inference_mode()
    def log_probability(self, features: Features, item: Integers, annotator: Integers) -> Floats:
        check_width(features, self.sizes.n_features)
        item, annotator = np.asarray(item), np.asarray(annotator, dtype=np.int64)
        out = np.empty((len(item), self.n_classes))
        with torch.random.fork_rng(devices=[]):
            for start in range(0, len(item), _PAIRS):
                pairs = slice(start, start + _PAIRS)
                torch.manual_seed(self.seed)  # for Monte-Carlo dropout
                items, row = np.unique(item[pairs], return_inverse=True)
                x = torch.from_numpy(features.vectors[items])
                log = self.log_pairs(x, torch.from_numpy(row), torch.from_numpy(annotator[pairs]))
                out[pairs] = log.double().log_softmax(dim=1).numpy()
        return out

    def state(self) -> State:
        notes = {"sizes": list(self.sizes), "seed": self.seed}
        return network_state(self.net)._replace(notes=notes)


class NetworkTendency(VectorTendency):
    """A trained `VectorNet`."""

    net: VectorNet

    def log_pairs(self, x: Tensor, row: Tensor, annotator: Tensor) -> Tensor:
        return self.net.log_given(self.net.scaled(x), row, annotator)


def fit_network(
    build: Callable[[Annotations], Net],
    x: Tensor,
    annotations: Annotations,
    training: Training,
    context: FitOptions,
) -> Net:
    """Return a trained network, built for the annotations outside the validation split."""
    network, _ = build_and_train(
        build,
        Examples(x, annotations),
        training,
        folder=context.folder,
        resume=context.resume,
        progress=context.progress,
        about=context.about,
        data=context.data,
    )
    return network


@dataclass(frozen=True, kw_only=True)
class NetworkMethod(TendencyMethod):
    """Settings that networks on vectors share.

    Parameters
    ----------
    hidden
        Width of the hidden layer.
    dropout
        Dropout of the vector and of the hidden layer.
    epochs
        Maximal number of epochs.
    batch
        Items per step.
    lr
        Learning rate at its highest.
    decay
        Weight decay.
    patience
        Epochs without improvement before training stops.
    held_out
        Share of items in the validation split, whose annotations choose the epoch.
    """

    network: ClassVar[type[VectorNet]]

    hidden: Count = 128
    dropout: Probability = 0.3
    epochs: Count = 60
    batch: Count = 32
    lr: Positive = 1e-3
    decay: NonNegative = 0.01
    patience: Annotated[int, Ge(0)] = 8
    held_out: Probability = 0.1

    def _fit(self, features: Features, annotations: Annotations, context: FitOptions) -> Tendency:
        x = torch.from_numpy(features.vectors)
        sizes = Sizes(x.shape[1], annotations.n_annotators, annotations.n_classes)

        def build(learned: Annotations) -> VectorNet:
            net = self.network(sizes, self)
            net.scaled.fit(x)
            net.start(learned)
            return net

        training = Training.of(self, optimizer="adamw", seed=context.seed)
        net = fit_network(build, x, annotations, training, context)
        net.start(annotations)
        return NetworkTendency(net, sizes, context.seed)

    def restore(self, state: State) -> Tendency:
        sizes = Sizes(*state.notes["sizes"])
        net = load_network(self.network(sizes, self), state)
        return NetworkTendency(net, sizes, state.notes["seed"])
