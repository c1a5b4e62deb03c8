"""What `train` and `aggregate-deep` share: data beside inputs, the training, and what is told."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._progress import progress_bar
from ..errors import DataError, OptionError
from ._shared import examine_annotations, is_first, note, show_json

if TYPE_CHECKING:
    from ..annotations import Annotations
    from ..learning.data_sets import DataSet
    from ..learning.outcome import Outcome, Places
    from ..readers import Reading
    from ._deep import Network

__all__ = [
    "data_options",
    "examined",
    "learn",
    "places_of",
    "read_data",
    "show",
    "without_removed",
]

_SHOWN = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "log_loss": "log loss",
    "ece": "calibration error",
}
_WORST = 5  # annotators that are named
_ENOUGH = 5  # labels before somebody is

_DATA = (
    click.option(
        "--output-name", "-o", "name", help="Of the files.  [default: by what is learned]"
    ),
    click.option(
        "--n-classes", "-K", type=click.IntRange(min=1), help="Classes, where they are 0, 1 …"
    ),
    click.option("--valid", help="Known labels of items to choose the epoch by.  [default: val/]"),
    click.option("--test", help="Known labels of items to test on.  [default: test/]"),
    click.option("--path-remove", help="Text file whose last column names items to leave out."),
    click.option(
        "--metadata_path", "--metadata-path", "metadata", help="Instead of the folder's own."
    ),
    click.option(
        "--held-out",
        type=click.FloatRange(min=0, max=0.9),
        default=0.1,
        show_default=True,
        help="Share of items held out to choose the epoch, without known labels.",
    ),
)


def data_options(command: Any) -> Any:
    """Add the options that say what is learned from and tried on."""
    for option in reversed(_DATA):
        command = option(command)
    return command


def examined(
    path: str,
    reading: dict[str, Any],
    *,
    answers: str | None = None,
    metadata: str | None = None,
    n_classes: int | None = None,
) -> Reading:
    """Return the annotations of a data set folder, a table or an export."""
    from .._names import numbered
    from ..readers import Reading
    from ..readers.folders import is_folder, read_folder

    classes = None if n_classes is None else numbered(n_classes).tolist()
    if is_folder(path):
        file = Path(answers or "answers.json")
        # As peerannot has it, a path counts from here; a name counts from the folder.
        file = file.resolve() if answers and file.exists() else file
        annotations = read_folder(path, answers=file, metadata=metadata, classes=classes)
        return Reading(annotations, "folder")
    if classes and not reading["classes"]:
        reading = reading | {"classes": ",".join(classes)}
    return examine_annotations(path, **reading)


def read_data(
    path: str,
    annotations: Annotations,
    network: Network,
    *,
    found: Reading | None = None,
    valid: str | None = None,
    test: str | None = None,
    metadata: str | None = None,
) -> DataSet:
    """Return annotations beside their inputs, which stand where the options say."""
    from ..learning.data_sets import open_data_set, open_folder
    from ..nn.reading import index_of_texts, read_input_index
    from ..readers import read_truth
    from ..readers.folders import is_folder, read_metadata

    known = {
        name: read_truth(file) if file else None
        for name, file in (("valid", valid), ("test", test))
    }
    if network.inputs is None and is_folder(path) and (Path(path) / "train").is_dir():
        names = read_metadata(path, metadata).get("label_names")
        data = open_folder(annotations, path, label_names=names, **known)
    else:
        try:
            if network.inputs is None and found is not None and found.texts is not None:
                input_index = index_of_texts(path, found.texts.select("item", "text").iter_rows())
            else:
                input_index = read_input_index(
                    network.inputs or path, annotations.items, column=network.column
                )
        except DataError as problem:
            hint = "" if network.inputs else "; --inputs says where inputs are, --column in which"
            raise DataError(f"{problem}{hint}") from None
        data = open_data_set(annotations, input_index, **known)
    for sentence in data.notes:
        note(sentence)
    return data


def without_removed(annotations: Annotations, file: str | None) -> Annotations:
    """Return the annotations without those on items that a file names."""
    from ..readers.side_tables import read_removed

    if file is None:
        return annotations
    removed = read_removed(file)
    return annotations.subset(
        items=[name for name in annotations.items.tolist() if name not in removed]
    )


def places_of(path: str, network: Network, name: str, model: str | None = None) -> Places:
    """Return where the files go, as peerannot names them and beside it the folder of the run."""
    from ..learning.outcome import Places
    from ..readers.folders import is_folder

    if not name.strip(". ") or "/" in name or "\\" in name:
        raise OptionError(f"{name!r} cannot name files; give another with -o")
    base = Path(network.folder or (path if is_folder(path) else "."))
    models = base / "best_models" / model if model else base / "best_models"
    return Places(models / name, base / "results" / f"{name}.json", base / "runs" / name)


def learn(
    method: str,
    data: DataSet,
    network: Network,
    positions: Places,
    *,
    held_out: float,
    seed: int,
    posterior: Any = None,
) -> Outcome:
    """Train a classifier; whatever is written comes afterwards, but for its run."""
    from dataclasses import replace

    from ..learning.classifier import CrowdClassifier
    from ..learning.outcome import Outcome
    from ..nn.runs import clear_ended

    made = CrowdClassifier(
        method,
        encoder=network.spec(data.inputs),
        frozen=network.frozen,
        augment=network.augmented,
        hidden=network.hidden,
        dropout=network.dropout,
        input_dropout=network.input_dropout,
        training=replace(network.training(seed), held_out=held_out),
        seed=seed,
    )
    valid = None
    if data.valid is not None:
        valid = data.valid.inputs, data.annotations.classes[data.valid.truth]
    if is_first() and not network.resume:
        clear_ended(positions.run)
    with ExitStack() as stack:
        progress = stack.enter_context(progress_bar("training"))
        try:
            made.fit(
                data.inputs,
                data.annotations,
                valid=valid,
                posterior=posterior,
                folder=positions.run,
                resume=network.resume,
                progress=progress,
            )
        except KeyboardInterrupt:
            if not (positions.run / "checkpoint.safetensors").exists():
                raise
            note(f"interrupted; the same command with --resume goes on in {positions.run}")
            raise SystemExit(130) from None
    return Outcome(made, data)


def show(outcome: Outcome, positions: Places, *, crowd: bool, as_json: bool) -> None:
    """Write what came of a training and say it; of several processes the first does."""
    if not is_first():
        return
    outcome.write(positions, crowd=crowd)
    if as_json:
        show_json(
            outcome.results() | {"files": {k: str(v) for k, v in positions._asdict().items()}}
        )
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    for part, found in outcome.evaluations.items():
        table = Table(title=f"{found.n_scored} {part} items of known truth")
        for column in ("score", "value", "95 % interval"):
            table.add_column(column)
        for name, words in _SHOWN.items():
            score = found.scores[name]
            assert score is not None
            table.add_row(words, f"{score.value:.4f}", f"{score.low:.4f} to {score.high:.4f}")
        console.print(table)
    for sentence in _told(outcome, positions, crowd):
        console.print(escape(sentence), soft_wrap=True)


def _told(outcome: Outcome, positions: Places, crowd: bool) -> list[str]:
    made, annotations = outcome.made, outcome.data.annotations
    history = made.history_
    what = f"{len(annotations)} labels" + (
        f" by {annotations.n_annotators} annotators" if crowd else ""
    )
    how = f"by {made.method} " if crowd else ""
    encoder = made.encoding_.name
    out = [
        f"Learned from {what} on {annotations.n_items} items, {how}with the encoder {encoder}.",
        f"Epoch {history.best} of {len(history.rows)} is kept, chosen by {history.chosen_by}.",
    ]
    if crowd and annotations.n_annotators > 1:
        table = outcome.annotators()
        order = [
            position
            for position in table["performance"].argsort().tolist()
            if table["n_labels"][position] >= _ENOUGH
        ]
        worst = [
            f"{table['annotator'][at]} ({table['performance'][at]:.0%} of {table['n_labels'][at]})"
            for at in order[:_WORST]
        ]
        if worst:
            out.append(f"Least often right, as the network sees it: {', '.join(worst)}.")
    sizes = {name: len(found.items) for name, found in outcome.predictions.items()}
    told = ", ".join(f"{size} {name}" for name, size in sizes.items())
    out.append(f"Predictions ({told}), log and curve are in {positions.run}.")
    out.append(f"The classifier is in {positions.model}, the results in {positions.results}.")
    return out
