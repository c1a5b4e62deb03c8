"""`dissensus aggregate-deep`."""

from __future__ import annotations

from typing import Any

import click

from ._network import Network, network_options
from .files import examine_folder, without_removed
from .training import data_options, fit_classifier, output_files, read_data, show_outcome
from .verb import READING, Computed, options


@click.command("aggregate-deep")
@click.argument("path", default=".")
@options(strategy="conal", answers=Computed("answers.json"))
@data_options
@network_options()
@options(*READING, "time_limit", "json", "seed")
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
    found = examine_folder(path, reading, answers=answers, metadata=metadata, n_classes=n_classes)
    annotations = without_removed(found.annotations, path_remove)
    files = output_files(path, network, output_name or strategy.lower())
    data = read_data(
        path, annotations, network, found=found, valid=valid, test=test, metadata=metadata
    )
    outcome = fit_classifier(strategy, data, network, files, seed)
    show_outcome(outcome, files, crowd=True, as_json=as_json)
