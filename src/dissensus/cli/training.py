"""What `train` and `aggregate-deep` share: data with inputs, training, and the results.

Options of `train`, `aggregate-deep` and `identify` about a network and its training.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..errors import DataError, OptionError
from ..pages.terminal import echo, is_first, note, print_scores, show_json
from .files import read_known
from .verb import Computed, options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..deep.learning.data_sets import DataSet
    from ..deep.learning.outcome import Outcome, OutputPaths
    from ..deep.nn import Inputs, Training
    from ..formats import Reading


_SHOWN = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "log_loss": "log loss",
    "ece": "calibration error",
}
_WORST = 5  # annotators that are named
_ENOUGH = 5  # labels of an annotator who is

data_options = options(
    ("n_classes", "path_remove", "metadata --metadata_path --metadata-path"),
    output_name=Computed("the method or the file of labels"),
    valid=Computed("val/"),
    test=Computed("test/"),
)
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


def read_data(
    path: str,
    annotations: Annotations,
    network: Network,
    *,
    examined: Reading | None = None,
    valid: str | None = None,
    test: str | None = None,
    metadata: str | None = None,
) -> DataSet:
    """Return annotations with the inputs of their items."""
    from ..deep.learning.data_sets import open_data_set, open_folder
    from ..deep.nn.reading import index_of_texts, read_input_index
    from ..formats.tools.peerannot import read_metadata

    known_labels = {"valid": read_known(valid), "test": read_known(test)}
    if network.inputs is None and (Path(path) / "train").is_dir():
        names = read_metadata(path, metadata).get("label_names")
        data = open_folder(annotations, path, label_names=names, **known_labels)
    else:
        try:
            if network.inputs is None and examined is not None and examined.texts is not None:
                input_index = index_of_texts(
                    path, examined.texts.select("item", "text").iter_rows()
                )
            else:
                input_index = read_input_index(
                    network.inputs or path, annotations.items, column=network.column
                )
        except DataError as problem:
            if network.inputs:
                raise
            raise problem.or_else("says where inputs are, --column in which", inputs=...) from None
        data = open_data_set(annotations, input_index, **known_labels)
    for sentence in data.notes:
        note(sentence)
    return data


def output_files(path: str, network: Network, name: str, encoder: str | None = None) -> OutputPaths:
    """Return the output files, as peerannot names them, and the folder of the run."""
    from ..deep.learning.outcome import OutputPaths

    if not name.strip(". ") or "/" in name or "\\" in name:
        raise OptionError(f"{name!r} cannot name files; give another with -o")
    base = Path(network.folder or (path if Path(path).is_dir() else "."))
    models = base / "best_models" / encoder if encoder else base / "best_models"
    return OutputPaths(models / name, base / "results" / f"{name}.json", base / "runs" / name)


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
    return Outcome(model, data)


def show_outcome(outcome: Outcome, files: OutputPaths, *, crowd: bool, as_json: bool) -> None:
    """Write and print the results; of several processes only the first does."""
    if not is_first():
        return
    outcome.write(files, crowd=crowd)
    if as_json:
        paths = {name: str(path) for name, path in files._asdict().items()}
        show_json(outcome.results() | {"files": paths})
        return
    for part, evaluation in outcome.evaluations.items():
        title = f"{evaluation.n_scored} {part} items of known truth"
        print_scores(evaluation.scores, _SHOWN, title)
    annotations, history = outcome.data.annotations, outcome.model.history_
    labels = f"{len(annotations)} labels"
    if crowd:
        labels += f" by {annotations.n_annotators} annotators"
    method = f"by {outcome.model.method} " if crowd else ""
    echo(
        f"Learned from {labels} on {annotations.n_items} items, {method}with the encoder "
        f"{outcome.model.encoding_.name}."
    )
    echo(f"Epoch {history.best} of {len(history.rows)} is kept, chosen by {history.chosen_by}.")
    worst = _worst_annotators(outcome) if crowd and annotations.n_annotators > 1 else []
    if worst:
        echo(f"Least accurate annotators, by the network: {', '.join(worst)}.")
    predictions = outcome.predictions.items()
    counts = ", ".join(f"{len(predicted.items)} {name}" for name, predicted in predictions)
    echo(f"Predictions ({counts}), log and curve are in {files.run}.")
    echo(f"The classifier is in {files.model}, the results in {files.results}.")


def _worst_annotators(outcome: Outcome) -> list[str]:
    table = outcome.annotators()
    rows = zip(
        *(table[name].tolist() for name in ("performance", "n_labels", "annotator")), strict=True
    )
    ranked = sorted((row for row in rows if row[1] >= _ENOUGH), key=lambda row: float(row[0]))
    return [f"{name} ({accuracy:.0%} of {count})" for accuracy, count, name in ranked[:_WORST]]


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
        def with_network(**arguments: Any) -> Any:
            settings = {name: arguments.pop(name) for name in _TRAINING}
            settings["batch"] = settings.pop("batch_size")
            layers = {name: arguments.pop(name) for name in _LAYERS}
            own = {field.name: arguments.pop(field.name) for field in fields(Network)[:-2]}
            return command(network=Network(**own, layers=layers, settings=settings), **arguments)

        declared: Callable[..., Any] = with_network
        for name in _IGNORED:
            declared = click.option(name, type=int, hidden=True, expose_value=False)(declared)
        defaults_of = _LAYERS | _TRAINING | defaults
        folder = Computed("PATH if it is a folder, otherwise here")
        names = (*_ENCODER, "data_augmentation", "epochs --n-epochs", "resume")
        return options(names, **defaults_of, folder=folder)(declared)

    return add
