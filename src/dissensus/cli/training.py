"""What verbs that train a network share: its options, reading, training, and the results."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.progress import progress_bar
from ..errors import OptionError
from ..pages.terminal import echo, is_first, note, print_sections, show_json
from .files import examine_folder, read_known, without_removed
from .verb import Options, computed, options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..base.names import Names
    from ..deep.learning.data_sets import DataSet
    from ..deep.learning.outcome import Outcome, OutputPaths
    from ..deep.nn import Inputs, Training
    from ..formats import Reading

# Options of `Training` that have its words.
_TRAINING = (
    *("epochs", "optimizer", "lr", "momentum", "decay", "scheduler", "milestones", "lr_decay"),
    *("patience", "held_out", "precision", "devices"),
)
_LAYERS = ("hidden", "dropout", "input_dropout")


@dataclass(frozen=True, kw_only=True)
class Network(Options):
    """A network and its training."""

    hidden: int = 128
    dropout: float = 0.5
    input_dropout: float = 0.3
    epochs: int = 100
    batch_size: int = 64
    optimizer: str = "adam"
    lr: float = 1e-3
    momentum: float = 0.9
    decay: float = 0.0
    scheduler: str = "constant"
    milestones: tuple[int, ...] = (50,)
    lr_decay: float = 0.1
    patience: int = 20
    held_out: float = 0.1
    precision: str = "32"
    devices: int = 1
    folder: str | None = computed("PATH if it is a folder, otherwise here")
    encoder: str = "auto"
    img_size: int | None = None
    pretrained: bool = False
    freeze: bool | None = None
    inputs: str | None = None
    column: str | None = None
    augmented: bool = False
    resume: bool = False

    def estimator(self, inputs: Inputs) -> dict[str, Any]:
        """Return the settings of a classifier that are about its network."""
        network = {"encoder": self._spec(inputs), "frozen": self.frozen, "augment": self.augmented}
        return network | {name: getattr(self, name) for name in _LAYERS}

    @property
    def frozen(self) -> bool | None:
        """Whether the encoder is not trained; None for the default of the encoder.

        As in peerannot, published weights that were requested are fine-tuned unless frozen.
        """
        return False if self.pretrained and self.freeze is None else self.freeze

    def training(self, seed: int) -> Training:
        """Return how the network is trained."""
        from ..deep.nn import Training

        settings = {name: getattr(self, name) for name in _TRAINING}
        return Training(seed=seed, batch=self.batch_size, **settings)

    def name(self, inputs: Inputs) -> str:
        """Return the encoder's name as that of a folder."""
        spec = self.encoder if self.encoder != "auto" else self._spec(inputs)
        return re.sub(r"[^\w.-]+", "-", spec.partition("[")[0].lower()).strip("-.") or "network"

    def _spec(self, inputs: Inputs) -> str:
        from ..deep.nn.encoders import encoder_spec

        return encoder_spec(self.encoder, inputs, size=self.img_size, pretrained=self.pretrained)


def network_options(**defaults: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a function of click the options of a network, as `network`."""
    names = [one.name for one in fields(Network)]
    words = {one.name: one.metadata.get("words", one.default) for one in fields(Network)}

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_network(**values: Any) -> Any:
            return function(network=Network(**{name: values.pop(name) for name in names}), **values)

        return options(names, **words | defaults)(with_network)

    return add


@dataclass(frozen=True, kw_only=True)
class Content(Options):
    """What counts of the inputs that a folder, a table or an array has."""

    column: str | None = None

    def read(self, path: str, items: Names) -> Inputs:
        """Return the inputs of items."""
        from ..deep.nn.reading import read_inputs

        return read_inputs(path, items, **vars(self))

    def items(self, path: str) -> Names:
        """Return the names of all items that have inputs."""
        from ..deep.nn.reading import items_of

        return items_of(path, column=self.column)


@dataclass(frozen=True, kw_only=True)
class MovingContent(Content):
    """What counts of inputs, videos and sounds among them."""

    frames: int = 16
    sound: bool = False


@dataclass(frozen=True, kw_only=True)
class ContentAndFeatures(Content):
    """What counts of inputs, and features beside them."""

    features: str | None = None

    def read(self, path: str, items: Names) -> Inputs:
        """Return the inputs of items, with features beside them if there are any."""
        from ..deep.nn.reading import read_with_features

        return read_with_features(path, items, **vars(self))


@dataclass(frozen=True, kw_only=True)
class Labelled(Options):
    """Annotated items to learn from, those to validate and test on, and where results go."""

    output_name: str | None = computed("the method or the file of labels")
    valid: str | None = computed("val/")
    test: str | None = computed("test/")
    n_classes: int | None = None
    path_remove: str | None = None
    metadata: str | None = None

    def examine(self, path: str, reading: dict[str, Any], answers: str | None = None) -> Reading:
        """Read the annotations of a data set folder or another path."""
        folder: dict[str, Any] = {"metadata": self.metadata, "n_classes": self.n_classes}
        return examine_folder(path, reading | {"kind": "single"}, answers=answers, **folder)

    def read(
        self, path: str, annotations: Annotations, network: Network, examined: Reading | None = None
    ) -> DataSet:
        """Return annotations with the inputs of their items."""
        remaining = without_removed(annotations, self.path_remove)
        held = {"valid": read_known(self.valid), "test": read_known(self.test)}
        return read_data(
            path, remaining, network, examined=examined, metadata=self.metadata, **held
        )

    def files(self, path: str, network: Network, name: str, encoder: str = "") -> OutputPaths:
        """Return the output files, as peerannot names them, and the folder of the run."""
        from ..deep.learning.outcome import OutputPaths

        name = self.output_name or name
        if not name.strip(". ") or "/" in name or "\\" in name:
            raise OptionError(f"{name!r} cannot name files; give another with -o")
        base = Path(network.folder or (path if Path(path).is_dir() else "."))
        return OutputPaths.below(base, name, encoder)


def read_data(
    path: str,
    annotations: Annotations,
    network: Network,
    *,
    examined: Reading | None = None,
    **others: Any,
) -> DataSet:
    """Return annotations with the inputs of their items, and say what was left out.

    Further arguments are those of `read_data_set`.
    """
    from ..deep.learning.data_sets import read_data_set

    where: Any = {"inputs": network.inputs, "column": network.column}
    where["texts"] = None if examined is None else examined.texts
    data = read_data_set(annotations, path, **where, **others)
    for sentence in data.notes:
        note(sentence)
    return data


def fit_classifier(
    method: str,
    data: DataSet,
    network: Network,
    files: OutputPaths,
    *,
    seed: int,
    posterior: Any = None,
) -> Outcome:
    """Train a classifier, with checkpoints in the folder of the run."""
    from ..deep.learning.classifier import CrowdClassifier
    from ..deep.learning.outcome import Outcome
    from ..deep.nn.runs import clear_ended

    model = CrowdClassifier(
        method, training=network.training(seed), seed=seed, **network.estimator(data.inputs)
    )
    if is_first() and not network.resume:
        clear_ended(files.run)
    with progress_bar("training") as progress:
        try:
            model.fit(
                data.inputs,
                data.annotations,
                valid=data.known_valid,
                posterior=posterior,
                folder=files.run,
                resume=network.resume,
                progress=progress,
            )
        except KeyboardInterrupt:
            if not (files.run / "checkpoint.safetensors").exists():
                raise
            note(f"interrupted; the same command with --resume goes on in {files.run}")
            raise SystemExit(130) from None
    return Outcome(model=model, data=data, crowd=posterior is None)


def show_outcome(outcome: Outcome, files: OutputPaths, *, as_json: bool) -> None:
    """Write and print the results; of several processes only the first does."""
    if not is_first():
        return
    outcome.write(files)
    if as_json:
        paths = {name: str(path) for name, path in files._asdict().items()}
        show_json(outcome.as_dict() | {"files": paths})
        return
    print_sections(outcome.sections())
    predictions = outcome.predictions.items()
    counts = ", ".join(f"{len(predicted.items)} {name}" for name, predicted in predictions)
    for sentence in (
        *outcome.sentences,
        f"Predictions ({counts}), log and curve are in {files.run}.",
        f"The classifier is in {files.model}, the results in {files.results}.",
    ):
        echo(sentence)
