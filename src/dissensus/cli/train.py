"""`dissensus train`, and peerannot's `modelinfo`.

`dissensus aggregate-deep`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import iterations, progress_bar
from .files import examine_folder, is_data_folder, without_removed
from .training import (
    Network,
    data_options,
    fit_classifier,
    network_options,
    output_files,
    read_data,
    show_outcome,
)
from .verb import READING, Computed, options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..result import Predictions


@click.command()
@click.argument("path", default=".")
@options(("labels", "strategy", "hard"))
@data_options
@network_options()
@options((*READING, "time_limit", "json", "seed"))
def train(
    path: str,
    labels: str | None,
    strategy: str | None,
    hard: bool,
    network: Network,
    output_name: str | None,
    n_classes: int | None,
    valid: str | None,
    test: str | None,
    path_remove: str | None,
    metadata: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Train a classifier on one label per item, hard or soft.

    PATH is a data set folder with train/ (and val/, test/), or where the inputs are: a folder of
    images, a table with texts, .npy or .npz. The labels come from a file, or with -s from
    aggregating the annotations in PATH. Items without a label (-1) are not learned from.

    \b
    Examples:
      dissensus train FOLDER --labels FOLDER/labels/labels_birds_ds.npy --encoder resnet18
      dissensus train texts.csv --labels labels.csv
    """
    from ..deep.learning.data_sets import aligned, labelled

    examined = None
    if strategy is not None and labels is None:
        examined = examine_folder(
            path, reading | {"kind": "single"}, metadata=metadata, n_classes=n_classes
        )
        examined.annotations.check_classes("a classifier")
        labels_given = _aggregate(examined.annotations, strategy, seed)
        default_name = strategy.lower()
    elif labels is not None and strategy is None:
        labels_given = _read_labels(path, labels, metadata, n_classes)
        default_name = Path(labels).name.partition(".csv")[0].removesuffix(".npy")
    else:
        raise click.UsageError("say what to learn: either --labels FILE, or -s to aggregate PATH")
    annotations, posterior = labelled(labels_given, hard=hard)
    remaining = without_removed(annotations, path_remove)
    data = read_data(
        path, remaining, network, examined=examined, valid=valid, test=test, metadata=metadata
    )
    files = output_files(path, network, output_name or default_name, network.name(data.inputs))
    target = aligned(posterior, annotations, data.annotations)
    outcome = fit_classifier("two-stage", data, network, files, seed=seed, posterior=target)
    show_outcome(outcome, files, crowd=False, as_json=as_json)


@click.command()
@options("json")
def modelinfo(as_json: bool) -> None:
    """List the encoders, networks that turn inputs into vectors."""
    from ..deep.nn.encoders import encoders
    from .methods import entries_of, show_entries

    show_entries(entries_of(encoders), as_json, title="dissensus train --encoder …")


def _aggregate(annotations: Annotations, strategy: str, seed: int) -> Predictions:
    import numpy as np

    from ..aggregation import as_method
    from ..result import Predictions

    method = as_method(strategy)
    with progress_bar("aggregating") as progress:
        result = method.fit(annotations, seed=seed, progress=iterations(progress))
    label = np.where(annotations.labels_per_item > 0, result.label, -1)
    return Predictions(annotations.items, result.classes, label, result.probabilities)


def _read_labels(
    path: str, labels: str, metadata: str | None, n_classes: int | None
) -> Predictions:
    """Return labels by the names of items; rows of an array are the items of the folder."""
    import numpy as np

    from ..base.names import numbered
    from ..errors import DataError
    from ..formats.predictions import read_predictions
    from ..formats.tools.peerannot import read_folder
    from ..result import Predictions

    predicted = read_predictions(labels, scale="nominal")
    assert isinstance(predicted, Predictions)
    if not labels.endswith(".npy"):
        return predicted
    items, classes = predicted.items, predicted.classes
    if is_data_folder(path):
        annotations = read_folder(path, metadata=metadata)
        items = annotations.items if annotations.n_items == len(items) else items
        classes = annotations.classes if annotations.n_classes >= len(classes) else classes
    if n_classes is not None:
        if n_classes < len(predicted.classes):
            raise DataError(f"{labels}: {len(predicted.classes)} classes, more than {n_classes}")
        classes = classes if len(classes) == n_classes else numbered(n_classes)
    posterior = predicted.posterior
    if posterior is not None:
        posterior = np.pad(posterior, ((0, 0), (0, len(classes) - posterior.shape[1])))
    return Predictions(items, classes, predicted.label, posterior)


@click.command("aggregate-deep")
@click.argument("path", default=".")
@options(strategy="conal", answers=Computed("answers.json"))
@data_options
@network_options()
@options((*READING, "time_limit", "json", "seed"))
def aggregate_deep(
    path: str,
    strategy: str,
    answers: str | None,
    network: Network,
    output_name: str | None,
    n_classes: int | None,
    valid: str | None,
    test: str | None,
    path_remove: str | None,
    metadata: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Learn a classifier from the labels of all annotators, end to end.

    PATH is a table of annotations, an export of a labelling tool, or a data set folder with train/
    (and val/, test/). The classifier and the annotators are learned together. The results are
    predictions for every item, scores of the annotators, and a model for new items.

    \b
    Examples:
      dissensus aggregate-deep answers.csv --inputs texts.csv -s crowd-layer
      dissensus aggregate-deep FOLDER -s "conal[scale=1e-4]" --encoder resnet18 --epochs 100
    """
    from ..registry import learners

    learners.create(strategy)  # before anything is read
    reading |= {"kind": "single"}
    examined = examine_folder(
        path, reading, answers=answers, metadata=metadata, n_classes=n_classes
    )
    annotations = without_removed(examined.annotations, path_remove)
    files = output_files(path, network, output_name or strategy.lower())
    data = read_data(
        path, annotations, network, examined=examined, valid=valid, test=test, metadata=metadata
    )
    outcome = fit_classifier(strategy, data, network, files, seed=seed)
    show_outcome(outcome, files, crowd=True, as_json=as_json)
