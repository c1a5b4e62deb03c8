"""Heads: networks with at most one hidden layer on frozen features, and their methods' base."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge, Interval
from torch import Tensor, nn

from ...answers.annotations import Annotations, Floats
from ..nn.batches import Source
from ..nn.checkpoints import load_network
from ..nn.features import Features
from ..nn.standardize import standardization
from ...params import Count, Positive
from .members import Members, initial_weights, train_members
from .method import FitInputs, Recovery, RecoveryMethod, State

Fraction = Annotated[float, Interval(ge=0, lt=1)]


class Heads(Members):
    """n networks with one hidden layer, or none, on the same vectors.

    Parameters
    ----------
    n
        Number of networks.
    width, n_classes
        Number of features and of classes.
    hidden
        Width of the hidden layer; 0 for none.
    dropout, input_dropout
        Dropout rates of the hidden layer and of the inputs.
    shared_dropout
        Use the same dropout mask for all members.
    seed
        Random seed of the initial weights.
    """

    def __init__(
        self, n: int, width: int, n_classes: int, *, hidden: int, seed: int = 0, **more: Any
    ) -> None:
        defaults = {"dropout": 0.0, "input_dropout": 0.0, "shared_dropout": False}
        super().__init__(n, width, n_classes, hidden=hidden, seed=seed, **defaults | more)
        if hidden:
            self.first = initial_weights(n, width, hidden, seed=seed)
            self.first_bias = nn.Parameter(torch.zeros(n, 1, hidden))
        self.last = initial_weights(n, hidden or width, n_classes, seed=seed)
        self.bias = nn.Parameter(torch.zeros(n, 1, n_classes))

    def inputs_from(self, features: Features) -> Tensor:
        return torch.tensor(features.vectors).to(self.mean)

    def standardize(self, x: Tensor | Source) -> None:
        assert isinstance(x, Tensor)
        self.mean, self.scale = standardization(x)

    def log_proba(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, self.hidden(x), self.last).log_softmax(dim=-1)

    def hidden(self, x: Tensor) -> Tensor:
        """Return the input of the last layer: (member, item, hidden)."""
        shared = self.settings["shared_dropout"]
        x = ((x - self.mean) * self.scale).expand(self.n, -1, -1)
        x = self.without(x, self.settings["input_dropout"], shared=shared)
        if self.settings["hidden"]:
            x = torch.relu(torch.baddbmm(self.first_bias, x, self.first))
            x = self.without(x, self.settings["dropout"], shared=shared)
        return x


class Networks(Recovery):
    """Trained networks."""

    def __init__(self, network: Members, held_out_proba: Floats | None = None) -> None:
        self.network = network
        self.held_out_proba = held_out_proba  # (item, class): by members that hold the item out

    def members(self, features: Features) -> Floats:
        return self.network.proba(self.network.inputs_from(features))

    def state(self) -> State:
        return State(self.network.settings, self.network.arrays())


@dataclass(frozen=True, kw_only=True)
class NetworkMethod(RecoveryMethod):
    """A method that trains networks.

    Parameters
    ----------
    hidden
        Width of the hidden layer; 0 for none.
    dropout
        Dropout rate of the hidden layer.
    epochs
        Number of epochs. A member with held-out items ends with the weights of its best one.
    steps
        Minimum number of steps: with few items there are more epochs.
    patience
        Epochs without an improvement of the members' mean, after which training stops.
    batch
        Batch size.
    lr
        Learning rate.
    """

    network: ClassVar[type[Members]] = Heads

    hidden: Annotated[int, Ge(0)] = 128
    dropout: Fraction = 0.5
    epochs: Count = 30
    steps: Count = 600
    patience: Count = 8
    batch: Count = 64
    lr: Positive = 1e-3

    def _train(
        self,
        network: Members,
        features: Features,
        context: FitInputs,
        sample_weight: Tensor,
        *,
        annotations: Annotations | None = None,
        soft_labels: Floats | None = None,
    ) -> Networks:
        """Return the trained network."""
        x = network.inputs_from(features)
        annotations = annotations or Annotations.from_labels(context.label, context.n_classes)
        epochs = max(self.epochs, -(-self.steps // -(-len(features) // self.batch)))
        train_members(
            network,
            x,
            annotations,
            sample_weight,
            seed=network.settings["seed"],
            soft_labels=context.soft_labels if soft_labels is None else soft_labels,
            progress=context.progress,
            epochs=epochs,
            patience=-(-self.patience * epochs // self.epochs),  # as long where epochs are short
            batch=self.batch,
            lr=self.lr,
        )
        model = self._fitted(network, network.held_out_proba(x))
        if context.soft_labels is not None:
            model.calibrate(annotations.label, annotations.item)
        return model

    def _fitted(self, network: Members, held_out_proba: Floats | None = None) -> Networks:
        return Networks(network, held_out_proba)

    def restore(self, state: State) -> Networks:
        return self._fitted(load_network(self.network(**state.notes), state))


@dataclass(frozen=True, kw_only=True)
class HeadMethod(NetworkMethod):
    """A method that trains heads on one vector per item.

    Parameters
    ----------
    input_dropout
        Dropout rate of the vectors.
    """

    input_dropout: Fraction = 0.3

    def _heads(
        self, features: Features, context: FitInputs, n: int, seed: int | None = None, **more: Any
    ) -> Members:
        """Return untrained heads."""
        return self.network(
            n, features.vectors.shape[1], context.n_classes, hidden=self.hidden,
            dropout=self.dropout, input_dropout=self.input_dropout,
            seed=context.seed if seed is None else seed, **more,
        )  # fmt: skip
