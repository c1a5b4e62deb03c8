"""`dissensus recover`: fit, predict, evaluate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..errors import OptionError
from ..pages.terminal import note, show_json
from . import Group
from .evaluate import show_soft
from .files import check_views, draw, read_annotations, show_result, split_patterns, write_table
from .training import ContentAndFeatures
from .verb import Options, command

if TYPE_CHECKING:
    from ..answers.annotations import Annotations


@click.group(cls=Group)
def recover() -> None:
    """Recover the distribution of labels from one label per item (label-distribution learning).

    \b
    Example:
      dissensus recover fit labels.csv --vote-count 5 -o model
      dissensus recover predict model more.csv -o shares.csv
      dissensus evaluate shares.csv --soft --annotations answers.csv
    """


@dataclass(frozen=True, kw_only=True)
class Classes(Options):
    """The classes, and how far they are from each other."""

    classes: str | None = None
    scale: str = "auto"
    distance: str | None = None


@dataclass(frozen=True, kw_only=True)
class Charts(Options):
    """What is drawn of recovered distributions."""

    chart: str | None = None
    reliability: str | None = None

    def check(self) -> None:
        """Refuse files that are no charts, before any work."""
        for path in (self.chart, self.reliability):
            check_views(None, path)

    def draw(self, recovered: dict[str, Any], annotations: Annotations) -> None:
        """Draw the first method's distributions, and the reliability of all."""
        from ..deep.recovery.sections import reliability_figure, splits_figure

        votes = annotations.votes()
        if self.chart:
            names = {"items": annotations.items.tolist(), "classes": annotations.classes.tolist()}
            draw(splits_figure(next(iter(recovered.values())), votes, **names), self.chart)
        if self.reliability:
            draw(reliability_figure(recovered, votes), self.reliability)


@command(recover, time_limit=True, inputs="LABELS")
def fit(
    labels: str,
    *,
    output: str,
    inputs: str | None = None,
    content: ContentAndFeatures,
    strategy: str = "auto",
    encoder: str = "auto",
    vote_count: int | None = None,
    members: int | None = None,
    annotations: str | None = None,
    classes: Classes,
    checkpoints: str | None = None,
    as_json: bool = False,
    seed: int = 0,
) -> None:
    """Fit to LABELS, a table with one label per item. Oracles learn from --annotations.

    On an ordinal scale, and with --distance, errors count by their distance.

    \b
    Example:
      dissensus recover fit labels.csv --vote-count 5 -o model
    """
    from ..deep.recovery.estimator import DistributionRecovery
    from ..deep.recovery.reading import in_order, read_distance, read_labelled

    names = split_patterns(classes.classes) or None
    labelled = read_labelled(labels, classes=names, scale=classes.scale)
    distance = read_distance(classes.distance, scale=classes.scale, classes=labelled.classes)
    model = DistributionRecovery(
        strategy,
        encoder=encoder,
        n_members=members,
        classes=labelled.classes,
        distance=distance,
        seed=seed,
    )
    x, crowd = content.read(inputs or labels, labelled.items), None
    if annotations is not None:
        crowd = in_order(read_annotations(annotations), labelled.items, annotations)
    with progress_bar("training") as progress:
        model.fit(
            x,
            labelled.labels,
            vote_count=vote_count,
            annotations=crowd,
            folder=checkpoints,
            progress=progress,
        )
    model.save(output)
    n_items = len(labelled.items)
    if as_json:
        summary = {"items": n_items, "classes": model.classes_.tolist(), "folder": output}
        show_json(summary | {"marginal": model.marginal_.tolist(), "strategy": strategy})
    else:
        note(f"{strategy} learned from {n_items} labels; it is in {output}")


@command(recover)
def predict(
    model: str, inputs: str, *, output: str = "-", content: ContentAndFeatures, votes: bool = False
) -> None:
    """Predict the distribution of labels on INPUTS, by a MODEL of `fit`.

    \b
    Example:
      dissensus recover predict model more.csv -o shares.csv
    """
    from ..deep.recovery.estimator import DistributionRecovery

    fitted, items = DistributionRecovery.load(model), content.items(inputs)
    with progress_bar("encoding"):
        features = fitted.features(content.read(inputs, items))
        table = fitted.prediction_columns(features, items, votes=votes)
    write_table(table, output)


@command(recover, strategies="auto, single, ldl")
def evaluate(
    annotations: str,
    *,
    inputs: str,
    content: ContentAndFeatures,
    strategies: tuple[str, ...] = (),
    folds: int = 5,
    repeats: int = 1,
    load: str | None = None,
    encoder: str = "auto",
    checkpoints: str | None = None,
    classes: Classes,
    charts: Charts,
    as_json: bool = False,
    seed: int = 0,
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
    from ..deep.recovery.reading import read_distance

    charts.check()
    if load and strategies:
        raise OptionError("--load scores a fitted model; leave out -s, or --load")
    crowd = read_annotations(annotations, scale=classes.scale, classes=classes.classes)
    crowd.check_classes("recover")
    x = content.read(inputs, crowd.items)
    model = DistributionRecovery.load(load) if load else None
    crowd = crowd if model is None else crowd.recode(model.classes_.tolist())
    measured: dict[str, Any] = {"ordered": crowd.scale == "ordinal", "seed": seed}
    measured["distance"] = read_distance(
        classes.distance, scale=crowd.scale, classes=crowd.classes.tolist()
    )
    if model is not None:
        with progress_bar("encoding"):
            shares = model.predict_proba(x)
        recovered = {model.method: shares}
        show_soft(
            evaluate_shares(shares, crowd.votes(), floor=model.marginal_, **measured), as_json
        )
    else:
        from ..deep.recovery.cross_validation import cross_validate_inputs

        specs = strategies or ("auto", "single", "ldl")
        run: Any = {"encoder": encoder, "folder": checkpoints, "folds": folds, "repeats": repeats}
        with progress_bar("cross-validating") as progress:
            crossed = cross_validate_inputs(x, crowd, specs, progress=progress, **run, **measured)
        recovered = {name: shares.mean(axis=0) for name, shares in crossed.proba.items()}
        show_result(crossed, as_json=as_json)
    charts.draw(recovered, crowd)
