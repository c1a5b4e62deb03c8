"""`dissensus train`, and `modelinfo` as peerannot calls its list of networks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._progress import iterations
from ._deep import Network, network_options
from ._learned import (
    data_options,
    examined,
    learn,
    places_of,
    read_data,
    show,
    without_removed,
)
from ._shared import json_option, progress_bar, reading_options, seed_option

if TYPE_CHECKING:
    from ..metrics import Predictions
    from ..nn import Inputs
    from ..readers import Reading

__all__ = ["modelinfo", "train"]


@click.command()
@click.argument("path", default=".")
@click.option("--labels", help="Labels to learn: a table or an array, as `aggregate` writes them.")
@click.option("--strategy", "-s", help="Or how to aggregate the labels of PATH: name[setting=…].")
@click.option("--hard", is_flag=True, help="Learn best classes where beliefs are known.")
@data_options
@network_options()
@reading_options
@json_option
@seed_option
def train(
    path: str,
    labels: str | None,
    strategy: str | None,
    hard: bool,
    network: Network,
    name: str | None,
    n_classes: int | None,
    valid: str | None,
    test: str | None,
    path_remove: str | None,
    metadata: str | None,
    held_out: float,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Train a classifier on one label per item, hard or soft.

    PATH is a data set folder with train/ (and val/, test/), or where the inputs are: a folder of
    images, a table with texts, .npy or .npz. The labels come from a file, or with -s from the
    annotations in PATH. Items without a label (-1) are not learned from.

    \b
    Examples:
      dissensus train FOLDER --labels FOLDER/labels/labels_birds_ds.npy --model resnet18
      dissensus train texts.csv --labels labels.csv
    """
    if (labels is None) == (strategy is None):
        raise click.UsageError("say what to learn: either --labels FILE, or -s to aggregate PATH")
    from ..learning.data_sets import aligned, labelled

    found = None
    if strategy is not None:
        found = examined(path, reading, metadata=metadata, n_classes=n_classes)
        given = _aggregated(found, strategy, seed)
    else:
        given = _read(path, str(labels), metadata, n_classes)
    annotations, posterior = labelled(given, hard=hard)
    data = read_data(
        path,
        without_removed(annotations, path_remove),
        network,
        found=found,
        valid=valid,
        test=test,
        metadata=metadata,
    )
    named = name or (strategy.lower() if strategy else _stem(str(labels)))
    positions = places_of(path, network, named, _model(network, data.inputs))
    outcome = learn(
        "two-stage",
        data,
        network,
        positions,
        held_out=held_out,
        seed=seed,
        posterior=aligned(posterior, annotations, data.annotations),
    )
    show(outcome, positions, crowd=False, as_json=as_json)


@click.command()
@json_option
def modelinfo(as_json: bool) -> None:
    """List the encoders, networks that turn inputs into vectors."""
    from ..catalogue import entries_of
    from ..nn.encoders import encoders
    from .methods import show_entries

    show_entries(entries_of(encoders), as_json, title="dissensus train --encoder …")


def _aggregated(found: Reading, strategy: str, seed: int) -> Predictions:
    import numpy as np

    from ..metrics import Predictions
    from ..registry import aggregators

    with progress_bar("aggregating") as progress:
        result = aggregators.create(strategy).fit(
            found.annotations, seed=seed, progress=iterations(progress)
        )
    label = np.where(found.annotations.labels_per_item > 0, result.label, -1)
    return Predictions(found.annotations.items, result.classes, label, result.posterior)


def _read(path: str, labels: str, metadata: str | None, n_classes: int | None) -> Predictions:
    """Return labels by the names of items; rows of an array are the items of the folder."""
    import numpy as np

    from .._names import numbered
    from ..errors import DataError
    from ..metrics import Predictions
    from ..readers.folders import is_folder, read_folder
    from ..readers.predictions import read_predictions

    given = read_predictions(labels, labels="nominal")
    assert isinstance(given, Predictions)
    if not labels.endswith(".npy"):
        return given
    items, classes = given.items, given.classes
    if is_folder(path) and (Path(path) / "answers.json").exists():
        annotations = read_folder(path, metadata=metadata)
        items = annotations.items if annotations.n_items == len(items) else items
        classes = annotations.classes if annotations.n_classes >= len(classes) else classes
    if n_classes is not None:
        if n_classes < len(given.classes):
            raise DataError(f"{labels}: {len(given.classes)} classes, more than {n_classes}")
        classes = classes if len(classes) == n_classes else numbered(n_classes)
    posterior = given.posterior
    if posterior is not None:
        posterior = np.pad(posterior, ((0, 0), (0, len(classes) - posterior.shape[1])))
    return Predictions(items, classes, given.label, posterior)


def _stem(file: str) -> str:
    return Path(file).name.partition(".csv")[0].removesuffix(".npy")


def _model(network: Network, inputs: Inputs) -> str:
    """Return the encoder's name as that of a folder."""
    asked = network.encoder if network.encoder != "auto" else network.spec(inputs)
    return asked.partition("[")[0].lower().replace("/", "_").replace(":", "-")
