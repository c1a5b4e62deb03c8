"""What `train`, `aggregate-deep` and `identify` ask of a network: options, declared once.

The names are peerannot's, so that its scripts run; `--encoder` is our word for `--model`. A verb
gets all of them as one `Network`, which knows what they mean for the library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..nn import Inputs, Training

__all__ = ["Network", "network_options"]


@dataclass(frozen=True, kw_only=True)
class Network:
    """What was asked of a network: which one, of which inputs, and how it is trained."""

    encoder: str
    size: int | None
    pretrained: bool
    freeze: bool | None
    hidden: int
    dropout: float
    input_dropout: float
    inputs: str | None
    column: str | None
    augmented: bool
    epochs: int
    batch: int
    optimizer: str
    lr: float
    momentum: float
    decay: float
    scheduler: str
    milestones: tuple[int, ...]
    lr_decay: float
    patience: int
    precision: str
    devices: int
    resume: bool
    folder: str | None

    def spec(self, inputs: Inputs) -> str:
        """Return the encoder as the library writes it, with size and weights in its brackets."""
        from ..nn.encoders import encoder_spec

        return encoder_spec(self.encoder, inputs, size=self.size, pretrained=self.pretrained)

    @property
    def frozen(self) -> bool | None:
        """Whether the encoder learns nothing; None for the encoder's own way.

        As peerannot has it, published weights that were asked for are tuned unless frozen.
        """
        return False if self.pretrained and self.freeze is None else self.freeze

    def training(self, seed: int) -> Training:
        """Return how the network is trained."""
        from ..nn import Training

        names = {field.name for field in fields(Training)} & {field.name for field in fields(self)}
        return Training(seed=seed, **{name: getattr(self, name) for name in names})


_SCHEDULERS = ["constant", "multistep", "cosine", "warmup-cosine"]
_OPTIMIZERS = ["adam", "adamw", "radam", "sgd"]
_RATE = click.FloatRange(min=0, min_open=True)
_SHARE = click.FloatRange(min=0, max=1)
_COUNT = click.IntRange(min=1)

# Field → names, type and words. A verb may have defaults of its own.
_OPTIONS: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    (
        "encoder",
        ("--model", "--encoder"),
        {
            "default": "auto",
            "help": "Turns inputs into vectors, see `dissensus modelinfo`; name[setting=value,…].",
        },
    ),
    ("size", ("--img-size",), {"type": _COUNT, "help": "Side of the images, in pixels."}),
    (
        "pretrained",
        ("--pretrained",),
        {"is_flag": True, "help": "Begin with published weights and tune them."},
    ),
    (
        "freeze",
        ("--freeze/--tune",),
        {
            "default": None,
            "help": "Whether the encoder learns nothing.  [default: frozen if it knows something]",
        },
    ),
    (
        "hidden",
        ("--hidden",),
        {"type": click.IntRange(min=0), "default": 128, "help": "Width of the layer above it."},
    ),
    (
        "dropout",
        ("--dropout",),
        {"type": _SHARE, "default": 0.5, "help": "Share of that layer left out in every step."},
    ),
    (
        "input_dropout",
        ("--input-dropout",),
        {"type": _SHARE, "default": 0.3, "help": "Share of the vectors left out in every step."},
    ),
    (
        "inputs",
        ("--inputs",),
        {
            "help": "Where the inputs are: a folder of images, a table, .npy or .npz.  "
            "[default: train/ of a folder, otherwise PATH itself]"
        },
    ),
    (
        "column",
        ("--column",),
        {"help": "Of a table, the column of texts or image files; of a .npz, the array."},
    ),
    (
        "augmented",
        ("--data-augmentation",),
        {"is_flag": True, "help": "Change images at random while training."},
    ),
    ("epochs", ("--n-epochs", "--epochs"), {"type": _COUNT, "default": 100, "help": "At most."}),
    ("batch", ("--batch-size",), {"type": _COUNT, "default": 64, "help": "Items per step."}),
    (
        "optimizer",
        ("--optimizer", "-optim"),
        {"type": click.Choice(_OPTIMIZERS, case_sensitive=False), "default": "adam"},
    ),
    ("lr", ("--lr",), {"type": _RATE, "default": 1e-3, "help": "Learning rate."}),
    ("momentum", ("--momentum",), {"type": _SHARE, "default": 0.9, "help": "Of sgd."}),
    (
        "decay",
        ("--decay",),
        {"type": click.FloatRange(min=0), "default": 0.0, "help": "Weight decay."},
    ),
    (
        "scheduler",
        ("--scheduler",),
        {
            "type": click.Choice(_SCHEDULERS, case_sensitive=False),
            "default": "constant",
            "is_flag": False,
            "flag_value": "multistep",  # in older peerannots it has no value
            "help": "How the learning rate changes.",
        },
    ),
    (
        "milestones",
        ("--milestones", "-m"),
        {
            "type": _COUNT,
            "multiple": True,
            "default": [50],
            "help": "Of multistep: epochs after which the rate falls; again for more.",
        },
    ),
    (
        "lr_decay",
        ("--lr-decay",),
        {"type": _RATE, "default": 0.1, "help": "Of multistep: what the rate is multiplied with."},
    ),
    (
        "patience",
        ("--patience",),
        {
            "type": click.IntRange(min=0),
            "default": 20,
            "help": "Epochs without a better one before it ends; 0 goes on to the last.",
        },
    ),
    (
        "precision",
        ("--precision",),
        {"type": click.Choice(["32", "bf16"]), "default": "32", "help": "Length of floats."},
    ),
    (
        "devices",
        ("--devices",),
        {"type": _COUNT, "default": 1, "help": "Processes; more than one through torchrun."},
    ),
    (
        "resume",
        ("--resume",),
        {"is_flag": True, "help": "Go on with a training that was interrupted."},
    ),
    (
        "folder",
        ("--folder",),
        {"help": "Where the files go.  [default: PATH if it is a folder, otherwise here]"},
    ),
)
# peerannot's, taken so that its scripts run: here encoders look at the inputs, threads read them.
_NOT_NEEDED = ("--n-params", "--num-workers")


def network_options(**defaults: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what adds the options to a verb, which gets them as `network`.

    Parameters
    ----------
    **defaults
        Defaults that the verb has of its own, by field of `Network`.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_network(**given: Any) -> Any:
            asked = Network(**{field.name: given.pop(field.name) for field in fields(Network)})
            return command(network=asked, **given)

        made: Callable[..., Any] = with_network
        for name in _NOT_NEEDED:
            made = click.option(name, type=int, hidden=True, expose_value=False)(made)
        for field, names, settings in reversed(_OPTIONS):
            told = settings | ({"default": defaults[field]} if field in defaults else {})
            shown = told.get("default") is not None and not told.get("is_flag")
            made = click.option(*names, field, **told, show_default=shown)(made)
        return made

    return add
