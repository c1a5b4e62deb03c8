"""`dissensus tendency`: fit, predict, evaluate, map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ._shared import (
    json_option,
    note,
    progress_bar,
    read_annotations,
    reading_options,
    seed_option,
    show_json,
)
from ._tendency_map import map_

if TYPE_CHECKING:
    from ..annotations import Annotations
    from ..tendency.classifier import TendencyClassifier

__all__ = ["tendency"]

_COLUMN = click.option(
    "--column", help="Of the inputs: the column of texts or files, or the array."
)
_FRAMES = click.option(
    "--frames",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    help="Of videos: frames that are used.",
)
_ENCODER = click.option(
    "--encoder", default="auto", show_default=True, help="What turns inputs into vectors."
)
_METADATA = click.option("--metadata", help="Table of annotators, a column for everything known.")
_INPUTS = click.option("--inputs", required=True, help="Table of texts, folder of images, array.")

# What a table shows: of the summary, and in words.
_SHOWN = {
    "log_loss": "log loss",
    "accuracy": "accuracy",
    "accuracy_worst_decile": "worst tenth",
    "macro_f1": "macro F1",
    "dic": "DIC",
    "dic_rms": "DIC rms",
    "kappa_correlation": "r of_kappas",
}


@click.group()
def tendency() -> None:
    """Model individual annotators: predict what each of them would say.

    \b
    Example:
      dissensus tendency evaluate answers.csv --inputs texts.csv
      dissensus tendency fit answers.csv --inputs texts.csv -o model
      dissensus tendency predict model more.csv -o predictions.csv
    """


tendency.add_command(map_)


@tendency.command()
@click.argument("path")
@click.option("--output", "-o", required=True, help="Folder for what was learned.")
@_INPUTS
@_COLUMN
@_FRAMES
@click.option("--strategy", "-s", default="auto", show_default=True, help="name[setting=value,…]")
@_ENCODER
@_METADATA
@click.option("--checkpoints", help="Folder for checkpoints; an interrupted run goes on from it.")
@reading_options
@json_option
@seed_option
def fit(
    path: str,
    output: str,
    inputs: str,
    column: str | None,
    frames: int,
    strategy: str,
    encoder: str,
    metadata: str | None,
    checkpoints: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Learn what each annotator says, from annotations in PATH and the inputs of their items.

    \b
    Example:
      dissensus tendency fit answers.csv --inputs texts.csv -o model
    """
    from ..registry import tendencies

    tendencies.create(strategy)  # before anything is read
    annotations = read_annotations(path, **reading)
    known = _metadata(metadata)
    x = _inputs(inputs, annotations.items, column, frames)
    estimator = _fitted(annotations, x, strategy, encoder, known, seed, checkpoints)
    estimator.save(output)
    summary = {
        "strategy": strategy,
        "n_items": annotations.n_items,
        "n_annotators": annotations.n_annotators,
        "n_labels": len(annotations),
        "classes": annotations.classes.tolist(),
        "parts": _parts(estimator),
        "folder": output,
    }
    if as_json:
        show_json(summary)
    else:
        words = ", ".join(f"{name} {share:.2f}" for name, share in _parts(estimator).items())
        note(
            f"{strategy} learned from {len(annotations)} labels by {annotations.n_annotators} "
            f"annotators on {annotations.n_items} items{': ' + words if words else ''}; "
            f"it is in {output}"
        )


@tendency.command()
@click.argument("model")
@click.argument("inputs")
@click.option("--output", "-o", default="-", show_default=True, help="Where the table goes.")
@_COLUMN
@_FRAMES
@click.option("--annotators", help="Whom to ask, with commas.  [default: all]")
def predict(
    model: str,
    inputs: str,
    output: str,
    column: str | None,
    frames: int,
    annotators: str | None,
) -> None:
    """Predict what annotators would say of INPUTS, by a MODEL that `fit` has written.

    The table has a row for every item and annotator.

    \b
    Example:
      dissensus tendency predict model more.csv -o predictions.csv
    """
    import numpy as np

    from .._names import as_names
    from ..nn.reading import items_of
    from ..readers.sources import format_for
    from ..tendency.classifier import TendencyClassifier
    from ..writers.table_files import write_columns

    if output != "-":
        format_for(output)  # before anything is computed
    estimator = TendencyClassifier.load(model)
    names = None if annotators is None else [name.strip() for name in annotators.split(",")]
    items = items_of(inputs, column=column)
    with progress_bar("reading inputs") as progress:
        probability = estimator.predict_annotator_proba(
            _inputs(inputs, items, column, frames),
            names,
            progress=progress,
        )  # (item, annotator, class)
    annotator = estimator.annotators_ if names is None else as_names(names)
    columns: dict[str, Any] = {
        "item": np.repeat(items, len(annotator)),
        "annotator": np.tile(annotator, len(items)),
        "label": estimator.classes_[probability.argmax(axis=2)].ravel(),
        "confidence": probability.max(axis=2).ravel(),
    }
    for index, name in enumerate(estimator.classes_.tolist()):
        columns[f"p:{name}"] = probability[:, :, index].ravel()
    write_columns(columns, output)


@tendency.command()
@click.argument("path")
@_INPUTS
@_COLUMN
@_FRAMES
@click.option("--model", help="Score this on all of PATH; otherwise items are held out.")
@click.option(
    "--strategy",
    "-s",
    "strategies",
    multiple=True,
    help="name[setting=value,…]; again for every method.  [default: auto]",
)
@_ENCODER
@_METADATA
@click.option(
    "--held-out",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.2,
    show_default=True,
    help="Share of items that are held out and predicted.",
)
@click.option(
    "--min-labels",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Held-out labels below which an annotator is left out of means.",
)
@click.option(
    "--min-overlap",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Common items below which a pair of annotators is not in DIC.",
)
@click.option("--weights", default="identity", show_default=True, help="Of kappas, for scales.")
@reading_options
@json_option
@seed_option
def evaluate(
    path: str,
    inputs: str,
    column: str | None,
    frames: int,
    model: str | None,
    strategies: tuple[str, ...],
    encoder: str,
    metadata: str | None,
    held_out: float,
    min_labels: int,
    min_overlap: int,
    weights: str,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Score predictions of each annotator's labels on held-out items.

    Methods learn from a part of the items in PATH and predict the labels on the rest. Two baselines
    are always included: each annotator's label marginals (own-majority) and one prediction for all
    (consensus). With --model, PATH should hold items that it has not learned from; its baselines
    are its label marginals and the mean over its annotators.

    \b
    Example:
      dissensus tendency evaluate answers.csv --inputs texts.csv -s auto -s linear
    """
    from ..errors import OptionError
    from ..registry import tendencies

    if model and strategies:
        raise OptionError("--model is scored as it is; leave out -s, or --model")
    specs = list(dict.fromkeys(["own-majority", "consensus", *(strategies or ("auto",))]))
    for spec in specs:
        tendencies.create(spec)  # before anything is read
    annotations = read_annotations(path, **reading)
    x = _inputs(inputs, annotations.items, column, frames)
    options = {"min_labels": min_labels, "min_overlap": min_overlap, "weights": weights}
    if model:
        found = _scored_model(model, annotations, x, options)
        title = f"{model} on {len(annotations)} labels, {annotations.n_items} items"
    else:
        split = _split(annotations, held_out, seed)
        known = _metadata(metadata)
        found = {
            spec: _scored(split, annotations, x, spec, encoder, known, seed, options)
            for spec in specs
        }
        n_labels, n_items = len(annotations.take(split[1])), len(split[1])
        title = f"{n_labels} labels on {n_items} of {annotations.n_items} items"
    if as_json:
        show_json({name: each.as_dict() for name, each in found.items()})
    else:
        _print(found, title)


def _inputs(path: str, items: Any, column: str | None, frames: int) -> Any:
    from ..nn.reading import read_inputs

    return read_inputs(path, items, column=column, frames=frames)


def _metadata(path: str | None) -> dict[str, dict[str, Any]] | None:
    from ..readers.side_tables import read_annotators

    return None if path is None else read_annotators(path)


def _fitted(
    annotations: Annotations,
    x: Any,
    strategy: str,
    encoder: str,
    known: Any,
    seed: int,
    checkpoints: str | None = None,
) -> TendencyClassifier:
    from ..tendency.classifier import TendencyClassifier

    estimator = TendencyClassifier(strategy, encoder=encoder, seed=seed)
    with progress_bar(strategy.partition("[")[0]) as progress:
        return estimator.fit(
            x,
            annotations,
            metadata=known,
            folder=checkpoints,
            resume=checkpoints is not None,
            progress=progress,
        )


def _parts(estimator: TendencyClassifier) -> dict[str, float]:
    """Return the members of the default with their weights."""
    members = getattr(estimator.model_, "members", ())
    weight = getattr(estimator.model_, "weight", ())
    return {name: float(share) for name, share in zip(members, weight, strict=True)}


def _split(annotations: Annotations, held_out: float, seed: int) -> tuple[Any, Any]:
    """Return items to learn from and held-out items, by code."""
    import numpy as np

    from ..errors import DataError

    labelled = np.flatnonzero(annotations.labels_per_item)
    order = np.random.default_rng([seed, 0x7E57]).permutation(labelled)
    count = round(held_out * len(order))
    if not 0 < count < len(order):
        raise DataError(f"{len(order)} labelled items are too few to hold out {held_out:g} of them")
    return np.sort(order[count:]), np.sort(order[:count])


def _scored(
    split: tuple[Any, Any],
    annotations: Annotations,
    x: Any,
    spec: str,
    encoder: str,
    known: Any,
    seed: int,
    options: dict[str, Any],
) -> Any:
    learned, held = split
    estimator = _fitted(annotations.take(learned), x.take(learned), spec, encoder, known, seed)
    return estimator.evaluate(x.take(held), annotations.take(held), **options)


def _scored_model(
    folder: str, annotations: Annotations, x: Any, options: dict[str, Any]
) -> dict[str, Any]:
    import numpy as np

    from ..tendency.classifier import TendencyClassifier
    from ..tendency.scores import score

    estimator = TendencyClassifier.load(folder)
    test, log_probability = estimator.predict_annotations(x, annotations)
    consensus = np.log(np.maximum(estimator.predict_proba(x, "soft"), 1e-15))
    predictions = {
        "own-majority": np.log(estimator.label_marginals_)[test.annotator],
        "consensus": consensus[test.item],
        estimator.method: log_probability,
    }
    return {
        name: score(test, each, seed=estimator.seed, **options)
        for name, each in predictions.items()
    }


def _print(found: dict[str, Any], title: str) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for words in _SHOWN.values():
        table.add_column(words.replace(" ", "\n").replace("_", " "), justify="right")
    summary: dict[str, float] = {}
    for name, scores in found.items():
        summary = scores.summary()
        table.add_row(escape(name), *(_cell(summary[key]) for key in _SHOWN))
    console = Console(highlight=False)
    console.print(table)
    floor = summary.get("dic_rms_floor", float("nan"))
    pairs, people = int(summary["n_pairs_used"]), int(summary["n_annotators"])
    console.print(f"means over {people} annotators with enough labels, {pairs} pairs of them")
    if floor == floor:
        console.print(
            f"noise of the labels themselves: DIC {summary['dic_floor']:.2f}, rms {floor:.3f}"
        )
    elif pairs:
        console.print("too few common items to estimate the noise of DIC: do not rely on it")


def _cell(value: float) -> str:
    return "–" if value != value else f"{value:.3f}"
