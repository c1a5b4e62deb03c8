"""`dissensus evaluate`."""

from __future__ import annotations

from typing import Literal

import click

from ._shared import json_option, seed_option, show_json

__all__ = ["evaluate"]

_WORDS = {
    "accuracy": "accuracy (expected over ties)",
    "accuracy_as_labelled": "accuracy of the labels as given",
    "macro_f1": "macro F1",
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "calibration error (ECE)",
    "mae": "mean absolute error",
    "rmse": "root mean squared error",
    "pearson": "correlation (Pearson)",
    "spearman": "correlation of ranks (Spearman)",
}


@click.command()
@click.argument("pred")
@click.option("--truth", help="Known labels: table, .npy, or a simulated folder.")
@click.option("--soft", is_flag=True, help="Score p:<class> against the shares of people.")
@click.option("--dic", is_flag=True, help="Score predictions of single annotators.")
@click.option("--annotations", help="What everybody said, for --soft and --dic.")
@click.option("--ordered", is_flag=True, help="Classes stand in order, for --soft.")
@click.option(
    "--min-overlap",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="For --dic: common items below which a pair of annotators is left out.",
)
@click.option("--weights", default="identity", show_default=True, help="For --dic: of kappas.")
@click.option(
    "--resamples",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="For intervals.",
)
@click.option(
    "--labels",
    "kind",
    type=click.Choice(["auto", "nominal", "numeric"]),
    default="auto",
    show_default=True,
    help="What labels are: classes or numbers.",
)
@json_option
@seed_option
def evaluate(
    pred: str,
    truth: str | None,
    soft: bool,
    dic: bool,
    annotations: str | None,
    ordered: bool,
    min_overlap: int,
    weights: str,
    resamples: int,
    kind: Literal["auto", "nominal", "numeric"],
    as_json: bool,
    seed: int,
) -> None:
    """Score labels against known ones, or shares against people.

    PRED is what `aggregate` wrote: a table, or a folder's label file (.npy). The known labels may
    cover a part of the items. Classes are scored by accuracy, F1 and beliefs, numbers by errors
    and correlations. With --soft, probabilities are scored against the shares of the annotators,
    beside one distribution for all items and the same people asked again. With --dic, PRED is what
    `tendency predict` wrote, scored against what every annotator said. Intervals are bootstrap
    intervals over items, 95 %.

    \b
    Example:
      dissensus evaluate labels.csv --truth truth.csv
      dissensus evaluate shares.csv --soft --annotations answers.csv
      dissensus evaluate foreseen.csv --dic --annotations answers.csv
    """
    from rich.console import Console
    from rich.table import Table

    from .. import metrics
    from ..errors import OptionError
    from ..readers import read_predictions, read_truth

    if (soft or dic) and annotations is None:
        raise OptionError("to compare with what everybody said, give --annotations FILE")
    if dic and annotations is not None:
        from ._dic import evaluate_annotators

        evaluate_annotators(pred, annotations, min_overlap, weights, resamples, as_json, seed)
        return
    if annotations is not None:
        _soft(pred, annotations, ordered, resamples, as_json, seed)
        return
    if truth is None:
        raise OptionError("score against what? --truth FILE, or --annotations FILE")
    given = read_predictions(pred, labels=kind)
    found = metrics.evaluate(given, read_truth(truth), resamples=resamples, seed=seed)
    if as_json:
        show_json(found.as_dict())
        return
    table = Table("score", "value", "95 % interval", title=f"{found.n_scored} items scored")
    for name, score in found.scores.items():
        if score is not None:
            low, high = (f"{bound:.4f}" for bound in score[1:])
            table.add_row(_WORDS[name], f"{score.value:.4f}", f"{low} to {high}")
    console = Console()
    console.print(table)
    for count, words in (
        (found.n_without_truth, "labelled items have no known label"),
        (found.n_without_prediction, "known labels have no prediction"),
    ):
        if count:
            console.print(f"{count} {words}", highlight=False)


def _soft(
    pred: str, annotations: str, ordered: bool, resamples: int, as_json: bool, seed: int
) -> None:
    """Score shares against what everybody said."""
    from ..readers import read, read_predictions
    from ..recovery.evaluation import evaluate_named
    from ._soft import print_soft

    given = read_predictions(pred, labels="nominal")
    found = evaluate_named(
        given, read(annotations), ordered=ordered, resamples=resamples, seed=seed
    )
    if as_json:
        show_json(found.as_dict())
    else:
        print_soft(found)
