"""`dissensus aggregate-deep`."""

from __future__ import annotations

from typing import Any

import click

from ._deep import Network, network_options
from ._learned import (
    data_options,
    examined,
    learn,
    output_paths,
    read_data,
    show,
    without_removed,
)
from ._shared import json_option, reading_options, seed_option

__all__ = ["aggregate_deep"]


@click.command("aggregate-deep")
@click.argument("path", default=".")
@click.option(
    "--strategy",
    "-s",
    default="conal",
    show_default=True,
    help="name[setting=value,…]; see `dissensus methods`.",
)
@click.option("--answers", help="Answers of a folder.  [default: answers.json]")
@data_options
@network_options()
@reading_options
@json_option
@seed_option
def aggregate_deep(
    path: str,
    strategy: str,
    answers: str | None,
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
    """Learn a classifier from all labels at once, end to end.

    PATH is a table of who said what, an export of a labelling tool, or a data set folder with
    train/ (and val/, test/). The classifier and the annotators are learned together: predictions
    for every item, what is known of each annotator, and a model to use on new items.

    \b
    Examples:
      dissensus aggregate-deep answers.csv --inputs texts.csv -s crowd-layer
      dissensus aggregate-deep FOLDER -s "conal[scale=1e-4]" --model resnet18 --n-epochs 100
    """
    from ..registry import learners

    learners.create(strategy)  # before anything is read
    found = examined(path, reading, answers=answers, metadata=metadata, n_classes=n_classes)
    annotations = without_removed(found.annotations, path_remove)
    paths = output_paths(path, network, name or strategy.lower())
    data = read_data(
        path, annotations, network, found=found, valid=valid, test=test, metadata=metadata
    )
    outcome = learn(strategy, data, network, paths, held_out=held_out, seed=seed)
    show(outcome, paths, crowd=True, as_json=as_json)
