"""Options of `train`, `aggregate-deep` and `identify` about a network and its training."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from .verb import Computed, options

if TYPE_CHECKING:
    from ..deep.nn import Inputs, Training

_ENCODER = ("encoder --model", "img_size", "pretrained", "freeze", "inputs", "column")
_TRAINING: dict[str, Any] = {
    "epochs": 100,
    "batch_size": 64,
    "optimizer": "adam",
    "lr": 1e-3,
    "momentum": 0.9,
    "decay": 0.0,
    "scheduler": "constant",
    "milestones": [50],
    "lr_decay": 0.1,
    "patience": 20,
    "held_out": 0.1,
    "precision": "32",
    "devices": 1,
}
_LAYERS: dict[str, Any] = {"hidden": 128, "dropout": 0.5, "input_dropout": 0.3}
# Options of peerannot that have no effect: encoders see the inputs, threads read them.
_IGNORED = ("--n-params", "--num-workers")


@dataclass(frozen=True)
class Network:
    """A network and its training, as the options describe them."""

    encoder: str
    img_size: int | None
    pretrained: bool
    freeze: bool | None
    augmented: bool
    inputs: str | None
    column: str | None
    resume: bool
    folder: str | None
    layers: dict[str, Any]
    settings: dict[str, Any]  # of `Training`

    def estimator(self, inputs: Inputs) -> dict[str, Any]:
        """Return the settings of a classifier that are about its network."""
        network = {"encoder": self._spec(inputs), "frozen": self.frozen, "augment": self.augmented}
        return network | self.layers

    @property
    def frozen(self) -> bool | None:
        """Whether the encoder is not trained; None for the default of the encoder.

        As in peerannot, published weights that were requested are fine-tuned unless frozen.
        """
        return False if self.pretrained and self.freeze is None else self.freeze

    def training(self, seed: int) -> Training:
        """Return how the network is trained."""
        from ..deep.nn import Training

        return Training(seed=seed, **self.settings)

    def name(self, inputs: Inputs) -> str:
        """Return the encoder's name as that of a folder."""
        spec = self.encoder if self.encoder != "auto" else self._spec(inputs)
        return re.sub(r"[^\w.-]+", "-", spec.partition("[")[0].lower()).strip("-.") or "network"

    def _spec(self, inputs: Inputs) -> str:
        from ..deep.nn.encoders import encoder_spec

        return encoder_spec(self.encoder, inputs, size=self.img_size, pretrained=self.pretrained)


def network_options(**defaults: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options to a command, which gets them as `network`.

    Parameters
    ----------
    **defaults
        Defaults of this command.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_network(**given: Any) -> Any:
            settings = {name: given.pop(name) for name in _TRAINING}
            settings["batch"] = settings.pop("batch_size")
            layers = {name: given.pop(name) for name in _LAYERS}
            own = {field.name: given.pop(field.name) for field in fields(Network)[:-2]}
            return command(network=Network(**own, layers=layers, settings=settings), **given)

        declared: Callable[..., Any] = with_network
        for name in _IGNORED:
            declared = click.option(name, type=int, hidden=True, expose_value=False)(declared)
        chosen = _LAYERS | _TRAINING | defaults
        folder = Computed("PATH if it is a folder, otherwise here")
        names = (*_ENCODER, "data_augmentation", "epochs --n-epochs", "resume")
        return options(*names, **chosen, folder=folder)(declared)

    return add
