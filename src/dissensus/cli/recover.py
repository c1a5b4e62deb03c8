"""`dissensus recover`: fit, predict, evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ._shared import json_option, note, progress_bar, read_annotations, seed_option, show_json
from .evaluate import print_soft

if TYPE_CHECKING:
    from ..annotations import Annotations
    from ..recovery.crossval import CrossValidation
    from ..recovery.estimator import DistributionRecovery

__all__ = ["recover"]

_SHOWN = {
    "Manh. dist.": "manhattan",
    "JSD bits": "jensen_shannon",
    "sq. unb.": "unbiased_squared",
    "cross entr.": "cross_entropy",
    "entr. corr.": "entropy_pearson",
    "accu- racy": "accuracy",
    "macro F1": "macro_f1",
}

_COLUMN = click.option(
    "--column", help="Of the inputs: the column of texts or files, or the array."
)
_ENCODER = click.option(
    "--encoder", default="auto", show_default=True, help="What turns inputs into vectors."
)


@click.group()
def recover() -> None:
    """Tell how people would have split, from one label per item.

    \b
    Example:
      dissensus recover fit labels.csv --vote-count 5 -o model
      dissensus recover predict model more.csv -o shares.csv
      dissensus evaluate shares.csv --soft --annotations answers.csv
    """


@recover.command()
@click.argument("labels")
@click.option("--output", "-o", required=True, help="Folder for what was learned.")
@click.option("--inputs", help="Table of texts, folder of images, or array.  [default: LABELS]")
@_COLUMN
@click.option("--strategy", "-s", default="auto", show_default=True, help="name[setting=value,…]")
@_ENCODER
@click.option("--vote-count", type=click.IntRange(min=1), help="People behind every label.")
@click.option("--members", type=click.IntRange(min=1), help="How many, for methods that have them.")
@click.option("--annotations", help="For oracles: what everybody said.")
@click.option("--classes", help="All classes in order, with commas.")
@click.option("--checkpoints", help="Folder for checkpoints; an interrupted run goes on from it.")
@json_option
@seed_option
def fit(
    labels: str,
    output: str,
    inputs: str | None,
    column: str | None,
    strategy: str,
    encoder: str,
    vote_count: int | None,
    members: int | None,
    annotations: str | None,
    classes: str | None,
    checkpoints: str | None,
    as_json: bool,
    seed: int,
) -> None:
    """Learn from LABELS, a table with one label per item.

    \b
    Example:
      dissensus recover fit labels.csv --vote-count 5 -o model
    """
    from .._names import as_names, code
    from ..readers import read_truth
    from ..recovery.estimator import DistributionRecovery

    known = read_truth(labels)
    items = as_names(list(known))
    names = [name.strip() for name in classes.split(",")] if classes else None
    made = DistributionRecovery(
        strategy,
        encoder=encoder,
        n_members=members,
        classes=names or code(list(known.values()))[1].tolist(),
        seed=seed,
    )
    from ..nn.reading import read_inputs

    x = read_inputs(inputs or labels, items, column=column)
    crowd = None
    if annotations is not None:
        crowd = _ordered_like(_plain(annotations), items.tolist(), annotations)
    with progress_bar("recovering") as progress:
        made.fit(
            x,
            list(known.values()),
            vote_count=vote_count,
            annotations=crowd,
            folder=checkpoints,
            progress=progress,
        )
    made.save(output)
    told = {"items": len(items), "classes": made.classes_.tolist(), "folder": output}
    if as_json:
        show_json(told | {"marginal": made.marginal_.tolist(), "strategy": strategy})
    else:
        note(f"{strategy} learned from {len(items)} labels; it is in {output}")


@recover.command()
@click.argument("model")
@click.argument("inputs")
@click.option("--output", "-o", default="-", show_default=True, help="Where the table goes.")
@_COLUMN
@click.option("--votes", is_flag=True, help="Also the share of members for every class: v:<class>.")
def predict(model: str, inputs: str, output: str, column: str | None, votes: bool) -> None:
    """Tell how people would split on INPUTS, by a MODEL that `fit` has written.

    \b
    Example:
      dissensus recover predict model more.csv -o shares.csv
    """
    from .._names import as_names
    from ..nn.reading import items_of, read_inputs
    from ..writers.table_files import write_columns

    made, items = _model(model), items_of(inputs, column=column)
    x = made.features(read_inputs(inputs, items, column=column))
    p, label = made.predict_proba(x), made.predict(x)
    columns: dict[str, Any] = {
        "item": items,
        "label": as_names(label.tolist()),
        "confidence": p.max(axis=1),
    }
    columns |= {f"p:{name}": p[:, k] for k, name in enumerate(made.classes_.tolist())}
    if votes:
        share = made.predict_votes(x)
        columns |= {f"v:{name}": share[:, k] for k, name in enumerate(made.classes_.tolist())}
    write_columns(columns, output)


@recover.command()
@click.argument("annotations")
@click.option("--inputs", required=True, help="Table of texts, folder of images, or array.")
@_COLUMN
@click.option("--model", help="Score this; otherwise methods are cross-validated.")
@click.option(
    "--strategy",
    "-s",
    "strategies",
    multiple=True,
    help="name[setting=value,…]; again for every method.  [default: auto, single, ldl]",
)
@_ENCODER
@click.option(
    "--folds",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Parts of the items, each of which is foreseen from the others.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How often they are dealt anew.",
)
@click.option("--keep", help="Folder for every fold; an interrupted run goes on from it.")
@click.option("--ordered", is_flag=True, help="Classes stand in order.")
@click.option("--chart", help="Draw splits of people and recovered ones: .svg, .png or .html.")
@click.option("--reliability", help="Draw recovered shares against those of people: the same.")
@json_option
@seed_option
def evaluate(
    annotations: str,
    inputs: str,
    column: str | None,
    model: str | None,
    strategies: tuple[str, ...],
    encoder: str,
    folds: int,
    repeats: int,
    keep: str | None,
    ordered: bool,
    chart: str | None,
    reliability: str | None,
    as_json: bool,
    seed: int,
) -> None:
    """Score recovered splits against ANNOTATIONS, in which several people label every item.

    With --model, what it recovers is scored on these items. Otherwise methods are cross-validated:
    they see the majority label of the items of other folds.

    \b
    Example:
      dissensus recover evaluate answers.csv --inputs texts.csv -s auto -s single --keep folds
    """
    from ..errors import OptionError
    from ..nn.reading import read_inputs
    from ..recovery.evaluation import evaluate_shares
    from ..reporting.charts import check_chart

    for path in filter(None, (chart, reliability)):
        check_chart(path)
    if model and strategies:
        raise OptionError("--model is scored as it is; leave out -s, or --model")
    crowd = _plain(annotations)
    x = read_inputs(inputs, crowd.items, column=column)
    if model:
        made = _model(model)
        crowd = crowd.recode(made.classes_.tolist())
        p = made.predict_proba(x)
        found = evaluate_shares(p, crowd.votes(), floor=made.marginal_, ordered=ordered, seed=seed)
        drawn = {made.method: p}
        if as_json:
            show_json(found.as_dict())
        else:
            print_soft(found)
    else:
        crossed = _crossed(x, crowd, strategies, encoder, folds, repeats, ordered, keep, seed)
        drawn = {name: p.mean(axis=0) for name, p in crossed.proba.items()}
        if as_json:
            show_json(crossed.as_dict())
        else:
            _print_crossed(crossed)
    _draw(drawn, crowd, chart, reliability)


def _plain(path: str) -> Annotations:
    """Read annotations whose format and columns tell for themselves."""
    return read_annotations(
        path, format_=None, question=None, columns=None, classes=None, missing="error"
    )


def _model(folder: str) -> DistributionRecovery:
    from ..recovery.estimator import DistributionRecovery

    return DistributionRecovery.load(folder)


def _ordered_like(annotations: Annotations, items: list[str], path: str) -> Annotations:
    """Return annotations on these items, in this order."""
    import numpy as np

    from ..errors import DataError

    position = {name: code for code, name in enumerate(annotations.items.tolist())}
    for name in items:
        if name not in position:
            raise DataError(f"{path}: nothing is said of item {name!r}, which has a label")
    return annotations.take(np.array([position[name] for name in items]))


def _crossed(
    x: Any,
    annotations: Annotations,
    strategies: tuple[str, ...],
    encoder: str,
    folds: int,
    repeats: int,
    ordered: bool,
    keep: str | None,
    seed: int,
) -> CrossValidation:
    from ..nn.features import features_of
    from ..recovery.crossval import cross_validate
    from ..registry import recoverers

    specs = strategies or ("auto", "single", "ldl")
    methods = [recoverers.create(spec) for spec in specs]
    used = {part for method in methods for part in (*method.needs, *method.uses)}
    features = features_of(
        x, encoder, vectors="vectors" in used, tokens="tokens" in used, raw="raw" in used, seed=seed
    )
    with progress_bar("recovering") as progress:
        return cross_validate(
            features,
            annotations,
            specs,
            folds=folds,
            repeats=repeats,
            ordered=ordered,
            seed=seed,
            folder=None if keep is None else Path(keep),
            progress=progress,
        )


def _print_crossed(found: CrossValidation) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    title = f"{found.n_items} items, {found.folds} folds, {found.repeats} repeats"
    heads = [name.replace(" ", "\n") for name in _SHOWN]
    table = Table("method", *heads, title=title)
    for method in found.scores:
        cells = [f"{found.mean(method, score).value:.3f}" for score in _SHOWN.values()]
        table.add_row(escape(method), *cells)
    Console(highlight=False).print(table)


def _draw(
    drawn: dict[str, Any], annotations: Annotations, chart: str | None, other: str | None
) -> None:
    from ..reporting.recovery_figures import reliability_figure, splits_figure

    if chart:
        first = next(iter(drawn.values()))
        splits_figure(
            first,
            annotations.votes(),
            items=annotations.items.tolist(),
            classes=annotations.classes.tolist(),
        ).save(chart)
        note(f"drawn to {chart}")
    if other:
        reliability_figure(drawn, annotations.votes()).save(other)
        note(f"drawn to {other}")
