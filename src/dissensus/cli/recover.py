"""`dissensus recover`: fit, predict, evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..errors import DataError, OptionError
from ..pages.terminal import class_columns, note, print_table, show_json
from . import Group
from .evaluate import show_soft
from .files import read_annotations, read_known, write_table
from .verb import REQUIRED, Computed, options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..base.names import Names
    from ..deep.nn import Inputs
    from ..deep.recovery.cross_validation import CrossValidation

_SHOWN = {
    "Manh.\ndist.": "manhattan",
    "JSD\nbits": "jensen_shannon",
    "sq.\nunb.": "unbiased_squared",
    "cross\nentr.": "cross_entropy",
    "entr.\ncorr.": "entropy_pearson",
    "accu-\nracy": "accuracy",
    "macro\nF1": "macro_f1",
}


@click.group(cls=Group)
def recover() -> None:
    """Recover the distribution of labels from one label per item (label-distribution learning).

    \b
    Example:
      dissensus recover fit labels.csv --vote-count 5 -o model
      dissensus recover predict model more.csv -o shares.csv
      dissensus evaluate shares.csv --soft --annotations answers.csv
    """


@recover.command()
@click.argument("labels")
@options(
    (
        *("column", "features", "encoder", "vote_count", "members", "annotations", "classes"),
        *("scale", "distance", "checkpoints", "time_limit", "json", "seed"),
    ),
    output=REQUIRED,
    inputs=Computed("LABELS"),
    strategy="auto",
)
def fit(
    labels: str,
    output: str,
    inputs: str | None,
    column: str | None,
    features: str | None,
    strategy: str,
    encoder: str,
    vote_count: int | None,
    members: int | None,
    annotations: str | None,
    classes: str | None,
    scale: str,
    distance: str | None,
    checkpoints: str | None,
    as_json: bool,
    seed: int,
) -> None:
    """Fit to LABELS, a table with one label per item. Oracles learn from --annotations.

    On an ordinal scale, and with --distance, errors count by their distance.

    \b
    Example:
      dissensus recover fit labels.csv --vote-count 5 -o model
    """
    from ..base.names import as_names, code
    from ..deep.recovery.estimator import DistributionRecovery
    from ..formats import kind_of_labels
    from ..metrics import ranks

    labels_by_item = read_known(labels) or {}
    items, label_list = as_names(list(labels_by_item)), list(labels_by_item.values())
    kind, reason = kind_of_labels(label_list)
    if classes is None and kind == "numeric" and scale not in ("ordinal", "nominal"):
        raise DataError(f"recover needs classes, but {reason}; --classes declares them as classes")
    if classes:
        names = [name.strip() for name in classes.split(",")]
    else:
        classes_found = code(label_list)[1]
        names = classes_found[ranks(classes_found).argsort()].tolist()
    model = DistributionRecovery(
        strategy,
        encoder=encoder,
        n_members=members,
        classes=names,
        distance=_distance(distance, scale, names),
        seed=seed,
    )
    x = _inputs(inputs or labels, features, items, column)
    crowd = None if annotations is None else _in_order(annotations, items)
    with progress_bar("training") as progress:
        model.fit(
            x,
            label_list,
            vote_count=vote_count,
            annotations=crowd,
            folder=checkpoints,
            progress=progress,
        )
    model.save(output)
    if as_json:
        summary = {"items": len(items), "classes": model.classes_.tolist(), "folder": output}
        show_json(summary | {"marginal": model.marginal_.tolist(), "strategy": strategy})
    else:
        note(f"{strategy} learned from {len(items)} labels; it is in {output}")


@recover.command()
@click.argument("model")
@click.argument("inputs")
@options(("column", "features", "votes"), output="-")
def predict(
    model: str, inputs: str, output: str, column: str | None, features: str | None, votes: bool
) -> None:
    """Predict the distribution of labels on INPUTS, by a MODEL of `fit`.

    \b
    Example:
      dissensus recover predict model more.csv -o shares.csv
    """
    from ..base.names import as_names
    from ..deep.nn.reading import items_of
    from ..deep.recovery.estimator import DistributionRecovery

    fitted, items = DistributionRecovery.load(model), items_of(inputs, column=column)
    with progress_bar("encoding"):
        x = fitted.features(_inputs(inputs, features, items, column))
        p = fitted.predict_proba(x)
    label = as_names(fitted.predict(x).tolist())
    columns: dict[str, Any] = {"item": items, "label": label, "confidence": p.max(axis=1)}
    columns |= class_columns(fitted.classes_, p)
    if votes:
        columns |= class_columns(fitted.classes_, fitted.predict_votes(x), "v")
    write_table(columns, output)


@recover.command()
@click.argument("annotations")
@options(
    (
        *("column", "features", "load --model", "encoder", "checkpoints --keep"),
        *("scale --ordered=ordinal", "classes", "distance", "chart", "reliability", "json", "seed"),
    ),
    inputs=REQUIRED,
    strategies=Computed("auto, single, ldl"),
    folds=5,
    repeats=1,
)
def evaluate(
    annotations: str,
    inputs: str,
    column: str | None,
    features: str | None,
    load: str | None,
    strategies: tuple[str, ...],
    encoder: str,
    checkpoints: str | None,
    scale: str,
    classes: str | None,
    distance: str | None,
    chart: str | None,
    reliability: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Score recovered distributions against ANNOTATIONS, with several labels per item.

    With --load, a fitted model is scored on these items. Otherwise methods are cross-validated:
    they see the majority label of the items of other folds. Repeat -s for several methods. On an
    ordinal scale, and with --distance, errors count by their distance.

    \b
    Example:
      dissensus recover evaluate answers.csv --inputs texts.csv -s auto -s single
    """
    from ..deep.recovery.estimator import DistributionRecovery
    from ..deep.recovery.evaluation import evaluate_shares
    from ..pages.charts import check_chart

    for path in filter(None, (chart, reliability)):
        check_chart(path)
    if load and strategies:
        raise OptionError("--load scores a fitted model; leave out -s, or --load")
    crowd = read_annotations(annotations, scale=scale, classes=classes)
    crowd.check_classes("recover")
    x = _inputs(inputs, features, crowd.items, column)
    if load:
        model = DistributionRecovery.load(load)
        crowd = crowd.recode(model.classes_.tolist())
        with progress_bar("encoding"):
            p = model.predict_proba(x)
        scores = evaluate_shares(
            p, crowd.votes(), floor=model.marginal_, seed=settings["seed"],
            **_distances(distance, crowd),
        )  # fmt: skip
        recovered = {model.method: p}
        show_soft(scores, as_json)
    else:
        crossed = _cross_validate(
            *(x, crowd, strategies or ("auto", "single", "ldl"), encoder),
            folder=None if checkpoints is None else Path(checkpoints),
            **settings | _distances(distance, crowd),
        )
        recovered = {name: p.mean(axis=0) for name, p in crossed.proba.items()}
        if as_json:
            show_json(crossed.as_dict())
        else:
            _print(crossed)
    _draw(recovered, crowd, chart, reliability)


def _inputs(path: str, features: str | None, items: Names, column: str | None) -> Inputs:
    """Return the inputs of items, with features beside them if there are any."""
    from ..deep.nn import Several, read_inputs

    inputs = read_inputs(path, items, column=column)
    if features is None:
        return inputs
    return Several({"inputs": inputs, "features": read_inputs(features, items)})


def _distance(distance: str | None, scale: str, names: list[str]) -> Any:
    """Return the distance between classes: its name, or a matrix read from a table."""
    from ..deep.recovery.base import DISTANCES, distances_from_table

    if distance is None:
        return "linear" if scale == "ordinal" else None
    if distance in DISTANCES:
        return distance
    from ..formats.sources import open_source
    from ..formats.tables import column_names, read_columns

    if not Path(distance).exists():
        raise OptionError(f"--distance {distance}: no such table; or one of {', '.join(DISTANCES)}")
    source = open_source(Path(distance))
    rows = [column_names(source), *read_columns(source, None).rows()]
    return distances_from_table(rows, names)


def _distances(distance: str | None, crowd: Annotations) -> dict[str, Any]:
    """Return what scores take: whether classes are ordered, and the distance between them."""
    measured = _distance(distance, crowd.scale, crowd.classes.tolist())
    return {"ordered": crowd.scale == "ordinal", "distance": measured}


def _in_order(path: str, items: Names) -> Annotations:
    """Return the annotations of these items, in this order."""
    from ..base.names import indices_of

    annotations = read_annotations(path)
    annotations.check_classes("recover")
    codes = indices_of(items, annotations.items)
    if (codes < 0).any():
        raise DataError(
            f"{path}: no annotations of item {items[codes < 0][0]!r}, which has a label"
        )
    return annotations.take(codes)


def _cross_validate(
    x: Any, annotations: Annotations, specs: tuple[str, ...], encoder: str, **settings: Any
) -> CrossValidation:
    from ..deep.nn.features import features_of
    from ..deep.recovery.cross_validation import cross_validate
    from ..registry import recoverers

    methods = [recoverers.create(spec) for spec in specs]
    parts_used = {part for method in methods for part in (*method.needs, *method.uses)}
    parts: Any = {name: name in parts_used for name in ("vectors", "tokens", "raw")}
    with progress_bar("cross-validating") as progress:
        features = features_of(x, encoder, seed=settings["seed"], progress=progress, **parts)
        return cross_validate(features, annotations, specs, progress=progress, **settings)


def _print(validation: CrossValidation) -> None:
    rows = [
        (method, *(f"{validation.mean(method, score).value:.3f}" for score in _SHOWN.values()))
        for method in validation.scores
    ]
    title = f"{validation.n_items} items, {validation.folds} folds, {validation.repeats} repeats"
    print_table(("method", *_SHOWN), rows, title)


def _draw(
    recovered: dict[str, Any], annotations: Annotations, chart: str | None, reliability: str | None
) -> None:
    from ..deep.recovery.sections import reliability_figure, splits_figure

    votes = annotations.votes()
    if chart:
        names = {"items": annotations.items.tolist(), "classes": annotations.classes.tolist()}
        splits_figure(next(iter(recovered.values())), votes, **names).save(chart)
        note(f"drawn to {chart}")
    if reliability:
        reliability_figure(recovered, votes).save(reliability)
        note(f"drawn to {reliability}")
