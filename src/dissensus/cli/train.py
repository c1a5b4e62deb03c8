"""`dissensus train` and `aggregate-deep`, and peerannot's `modelinfo`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..base.progress import iterations, progress_bar
from .training import Labelled, Network, fit_classifier, show_outcome
from .verb import READING, command


@command(time_limit=True, reading=READING)
def train(
    path: str = ".",
    *,
    labels: str | None = None,
    strategy: str | None = None,
    hard: bool = False,
    data: Labelled,
    network: Network,
    as_json: bool = False,
    seed: int = 0,
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
    from ..deep.learning.data_sets import aggregated, aligned, labelled, read_labels

    examined = None
    if strategy is not None and labels is None:
        examined = data.examine(path, reading)
        with progress_bar("aggregating") as progress:
            learned = aggregated(examined.annotations, strategy, seed, iterations(progress))
        name = strategy.lower()
    elif labels is not None and strategy is None:
        learned = read_labels(labels, path, metadata=data.metadata, n_classes=data.n_classes)
        name = Path(labels).name.partition(".csv")[0].removesuffix(".npy")
    else:
        raise click.UsageError("say what to learn: either --labels FILE, or -s to aggregate PATH")
    annotations, posterior = labelled(learned, hard=hard)
    data_set = data.read(path, annotations, network, examined)
    files = data.files(path, network, name, network.name(data_set.inputs))
    target = aligned(posterior, annotations, data_set.annotations)
    outcome = fit_classifier("two-stage", data_set, network, files, seed=seed, posterior=target)
    show_outcome(outcome, files, as_json=as_json)


@command(time_limit=True, reading=READING, answers="answers.json")
def aggregate_deep(
    path: str = ".",
    *,
    strategy: str = "conal",
    answers: str | None = None,
    data: Labelled,
    network: Network,
    as_json: bool = False,
    seed: int = 0,
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
    examined = data.examine(path, reading, answers)
    files = data.files(path, network, strategy.lower())
    data_set = data.read(path, examined.annotations, network, examined)
    outcome = fit_classifier(strategy, data_set, network, files, seed=seed)
    show_outcome(outcome, files, as_json=as_json)


@command()
def modelinfo(*, as_json: bool = False) -> None:
    """List the encoders, networks that turn inputs into vectors."""
    from ..deep.nn.encoders import encoders
    from .methods import entries_of, show_entries

    show_entries(entries_of(encoders), as_json, title="dissensus train --encoder …")
