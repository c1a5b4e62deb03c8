"""`dissensus tendency`: fit, predict, evaluate, map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..errors import DataError, OptionError
from ..pages.terminal import class_columns, echo, note, number, print_table, print_text, show_json
from . import Group
from .files import asked, read_annotations, read_questions, split_names, write_table
from .verb import READING, REQUIRED, Computed, options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..deep.tendency.classifier import TendencyClassifier

# Scores of the summary, and their heads in a table.
_SHOWN = {
    "log_loss": "log\nloss",
    "accuracy": "accuracy",
    "accuracy_worst_decile": "worst\ntenth",
    "macro_f1": "macro\nF1",
    "mae": "MAE",
    "dic": "DIC",
    "dic_rms": "DIC\nrms",
    "kappa_correlation": "r\nof kappas",
}


@click.group(cls=Group)
def tendency() -> None:
    """Predict the label of each annotator (modelling individual annotators).

    \b
    Example:
      dissensus tendency evaluate answers.csv --inputs texts.csv
      dissensus tendency fit answers.csv --inputs texts.csv -o model
      dissensus tendency predict model more.csv -o predictions.csv
    """


@tendency.command()
@click.argument("path")
@options(
    (
        *("column", "frames", "sound", "encoder", "annotators --metadata", "checkpoints"),
        *(*READING, "time_limit", "json", "seed"),
    ),
    output=REQUIRED,
    inputs=REQUIRED,
    strategy=Computed("auto; query for several questions"),
)
def fit(
    path: str,
    output: str,
    inputs: str,
    column: str | None,
    frames: int,
    sound: bool,
    strategy: str | None,
    encoder: str,
    annotators: str | None,
    checkpoints: str | None,
    as_json: bool,
    seed: int,
    question: str | None,
    **reading: Any,
) -> None:
    """Fit a model of each annotator to annotations in PATH and the inputs of their items.

    Several questions about the same items, `--question safe,lively`, are learned together by
    methods with queries.

    \b
    Example:
      dissensus tendency fit answers.csv --inputs texts.csv -o model
      dissensus tendency fit export.json --inputs photos --question safe,lively -o model
    """
    from ..deep.nn.reading import read_inputs
    from ..registry import tendencies

    has_several = question is not None and "," in question
    strategy = strategy or ("query" if has_several else "auto")
    tendencies.create(strategy)  # before anything is read
    questions = read_questions(path, question or "", **reading) if has_several else {}
    annotations = (
        next(iter(questions.values()))
        if has_several
        else read_annotations(path, question=question, **reading)
    )
    x = read_inputs(inputs, annotations.items, column=column, frames=frames, sound=sound)
    metadata = _read_annotators(annotators)
    estimator = _fit(
        questions or annotations,
        x,
        strategy,
        encoder=encoder,
        metadata=metadata,
        seed=seed,
        checkpoints=checkpoints,
    )
    estimator.save(output)
    n_labels = sum(map(len, questions.values())) if has_several else len(annotations)
    n_annotators = len(estimator.annotators_)
    members = getattr(estimator.model_, "members", ())
    weight = getattr(estimator.model_, "weight", ())
    parts = {name: float(share) for name, share in zip(members, weight, strict=True)}
    if as_json:
        show_json(
            {
                "strategy": strategy,
                "n_items": annotations.n_items,
                "n_annotators": n_annotators,
                "n_labels": n_labels,
                "questions": estimator.questions_,
                "classes": estimator.classes_.tolist(),
                "parts": parts,
                "folder": output,
            }
        )
        return
    words = ", ".join(f"{name} {share:.2f}" for name, share in parts.items())
    note(
        f"{strategy} learned from {n_labels} labels by {n_annotators} annotators on "
        f"{annotations.n_items} items{': ' + words if words else ''}; "
        f"it is in {output}"
    )


@tendency.command()
@click.argument("model")
@click.argument("inputs")
@options(
    ("column", "frames", "sound", "question", "among --annotators"),
    output="-",
    among=Computed("all annotators"),
)
def predict(
    model: str,
    inputs: str,
    output: str,
    column: str | None,
    frames: int,
    sound: bool,
    question: str | None,
    among: str | None,
) -> None:
    """Predict the labels of annotators on INPUTS, by a MODEL of `fit`.

    The table has a row for every item and annotator. Of a model of several questions, --question
    chooses one.

    \b
    Example:
      dissensus tendency predict model more.csv -o predictions.csv
    """
    import numpy as np

    from ..base.names import as_names
    from ..deep.nn.reading import items_of, read_inputs
    from ..deep.tendency.classifier import TendencyClassifier
    from ..formats.sources import format_for

    if output != "-":
        format_for(output)  # before anything is computed
    estimator = asked(TendencyClassifier.load(model), question)
    names = split_names(among)
    items = items_of(inputs, column=column)
    x = read_inputs(inputs, items, column=column, frames=frames, sound=sound)
    with progress_bar("encoding") as progress:
        # (item, annotator, class)
        probability = estimator.predict_annotator_proba(x, names, progress=progress)
    annotators = estimator.annotators_ if names is None else as_names(names)
    columns: dict[str, Any] = {
        "item": np.repeat(items, len(annotators)),
        "annotator": np.tile(annotators, len(items)),
        "label": estimator.classes_[probability.argmax(axis=2)].ravel(),
        "confidence": probability.max(axis=2).ravel(),
    }
    write_table(columns | class_columns(estimator.classes_, probability), output)


@tendency.command()
@click.argument("path")
@options(
    (
        *("column", "frames", "sound", "load --model", "encoder", "annotators --metadata"),
        *(*READING, "time_limit", "json", "seed"),
    ),
    inputs=REQUIRED,
    strategies=Computed("auto"),
    held_out=0.2,
    min_labels=10,
    min_overlap=10,
    weights="identity",
)
def evaluate(
    path: str,
    inputs: str,
    column: str | None,
    frames: int,
    sound: bool,
    load: str | None,
    strategies: tuple[str, ...],
    encoder: str,
    annotators: str | None,
    held_out: float,
    min_labels: int,
    min_overlap: int,
    weights: str,
    as_json: bool,
    seed: int,
    question: str | None,
    **reading: Any,
) -> None:
    """Score predictions of each annotator's labels on held-out items.

    Methods learn from a part of the items in PATH and predict the labels on the rest. Two baselines
    are always included: each annotator's label marginals (own-majority) and one prediction for all
    (consensus). With --load, PATH should hold items that the model has not learned from; its
    baselines are its label marginals and the mean over its annotators. Repeat -s for several
    methods.

    \b
    Example:
      dissensus tendency evaluate answers.csv --inputs texts.csv -s auto -s linear
    """
    from ..deep.nn.features import features_of
    from ..deep.nn.reading import read_inputs
    from ..registry import tendencies

    if load and strategies:
        raise OptionError("--load scores a fitted model; leave out -s, or --load")
    specs = list(dict.fromkeys(["own-majority", "consensus", *(strategies or ("auto",))]))
    for spec in specs:
        tendencies.create(spec)  # before anything is read
    annotations = read_annotations(path, question=question, **reading)
    x = read_inputs(inputs, annotations.items, column=column, frames=frames, sound=sound)
    options = {"min_labels": min_labels, "min_overlap": min_overlap, "weights": weights}
    if load:
        with progress_bar("encoding"):
            scores = _score_model(load, question, annotations, x, **options)
        title = f"{load} on {len(annotations)} labels, {annotations.n_items} items"
    else:
        train, test = _split(annotations, held_out, seed)
        metadata = _read_annotators(annotators)
        scores, learned = {}, annotations.take(train)
        tokens = any(tendencies.create(spec).needs_tokens(learned) for spec in specs)
        with progress_bar("encoding") as progress:  # once, for all methods
            features = features_of(x, encoder, tokens=tokens, seed=seed, progress=progress)
        held_out_features, held_out_labels = features.take(test), annotations.take(test)
        for spec in specs:
            part = features.take(train)
            estimator = _fit(learned, part, spec, encoder=encoder, metadata=metadata, seed=seed)
            scores[spec] = estimator.evaluate(held_out_features, held_out_labels, **options)
        title = f"{len(held_out_labels)} labels on {len(test)} of {annotations.n_items} items"
    if as_json:
        show_json({name: method_scores.as_dict() for name, method_scores in scores.items()})
    else:
        _print(scores, title)


@tendency.command("map")
@click.argument("model")
@click.argument("path")
@options(
    (
        *("annotations --answers", "column", "frames", "sound", "raw", "only --items"),
        *("top --most", "among --annotators", *READING, "json", "seed"),
    ),
    output="maps",
    only=Computed("the first items"),
    top=12,
    among=Computed("all annotators"),
    over="mean",
)
def map_(
    model: str,
    path: str,
    output: str,
    only: str | None,
    top: int,
    among: str | None,
    annotations: str | None,
    column: str | None,
    frames: int,
    sound: bool,
    over: Any,
    raw: bool,
    as_json: bool,
    seed: int,
    question: str | None,
    **reading: Any,
) -> None:
    """Draw attention maps of annotators over the items of PATH, by a MODEL of `fit`.

    Writes a page (index.html), a sheet of all annotators side by side, a picture for every item
    and annotator, and a table of all weights. The model needs queries: query or qumatl.

    \b
    Example:
      dissensus tendency fit answers.csv --inputs photos -s query -o model
      dissensus tendency map model photos --annotations answers.csv -o maps
    """
    import numpy as np

    from ..base.names import as_names
    from ..deep.nn.encoders import encoder_for
    from ..deep.nn.features import features_of
    from ..deep.nn.reading import items_of, read_inputs
    from ..deep.tendency.attention_page import MapNames, attention_report
    from ..deep.tendency.classifier import TendencyClassifier
    from ..deep.tendency.maps import query_model

    estimator = asked(TendencyClassifier.load(model), question)
    query_model(estimator.model_)  # before anything is read
    codes = estimator.annotator_codes(split_names(among))
    items = as_names(split_names(only) or ()) if only else items_of(path)[:top]
    inputs = read_inputs(path, items, column=column, frames=frames, sound=sound)
    crowd = None
    if annotations:
        crowd = read_annotations(annotations, question=question, **reading)
        crowd = crowd.subset(items=np.isin(crowd.items, items))
    with progress_bar("encoding") as progress:
        features = features_of(inputs, estimator.encoder, tokens=True, progress=progress)
    texts = inputs.kind == "texts"  # whose encoder knows the subwords
    report = attention_report(
        estimator.model_,
        inputs,
        features,
        MapNames(items, estimator.annotators_, estimator.classes_),
        chosen=codes,
        annotations=crowd,
        encoder=encoder_for(estimator.encoder, inputs) if texts else None,
        layers=over,
        raw=raw,
        seed=seed,
    )
    report.save(output)
    if as_json:
        show_json(report.as_dict())
        return
    for sentence in report.sentences:
        echo(sentence)
    note(f"The page is {output}/index.html, the sheet {output}/sheet.png")


def _read_annotators(path: str | None) -> dict[str, dict[str, Any]] | None:
    from ..formats.side_tables import read_annotators

    return None if path is None else read_annotators(path)


def _fit(
    annotations: Annotations | dict[str, Annotations],
    x: Any,
    strategy: str,
    *,
    encoder: str,
    metadata: Any,
    seed: int,
    checkpoints: str | None = None,
) -> TendencyClassifier:
    from ..deep.tendency.classifier import TendencyClassifier

    estimator = TendencyClassifier(strategy, encoder=encoder, seed=seed)
    with progress_bar(strategy.partition("[")[0]) as progress:
        estimator.fit(
            x,
            annotations,
            metadata=metadata,
            folder=checkpoints,
            resume=checkpoints is not None,
            progress=progress,
        )
    if remark := getattr(estimator.model_, "remark", ""):
        note(remark)
    return estimator


def _split(annotations: Annotations, held_out: float, seed: int) -> tuple[Any, Any]:
    """Return training items and held-out items, by code."""
    import numpy as np

    labelled = np.flatnonzero(annotations.labels_per_item)
    order = np.random.default_rng([seed, 0x7E57]).permutation(labelled)
    count = round(held_out * len(order))
    if not 0 < count < len(order):
        raise DataError(f"{len(order)} labelled items are too few to hold out {held_out:g} of them")
    return np.sort(order[count:]), np.sort(order[:count])


def _score_model(
    folder: str, question: str | None, annotations: Annotations, x: Any, **options: Any
) -> dict[str, Any]:
    import numpy as np

    from ..deep.tendency.classifier import TendencyClassifier
    from ..deep.tendency.scores import score

    estimator = asked(TendencyClassifier.load(folder), question)
    test, log_probability = estimator.predict_annotations(x, annotations)
    consensus = np.log(np.maximum(estimator.predict_proba(x, "soft"), 1e-15))
    predictions = {
        "own-majority": np.log(estimator.label_marginals_)[test.annotator],
        "consensus": consensus[test.item],
        estimator.method: log_probability,
    }
    return {
        name: score(test, log_probability, seed=estimator.seed, **options)
        for name, log_probability in predictions.items()
    }


def _print(scores: dict[str, Any], title: str) -> None:
    from math import isnan

    from rich.box import SIMPLE

    summaries = {name: method_scores.summary() for name, method_scores in scores.items()}
    ordered = any(not isnan(summary["mae"]) for summary in summaries.values())
    columns_shown = {key: head for key, head in _SHOWN.items() if key != "mae" or ordered}
    rows = [
        (name, *(number(summary[key]) for key in columns_shown))
        for name, summary in summaries.items()
    ]
    columns = ("method", *(f">{head}" for head in columns_shown.values()))
    print_table(columns, rows, title, box=SIMPLE)
    summary = list(summaries.values())[-1]
    pairs, people = int(summary["n_pairs_used"]), int(summary["n_annotators"])
    print_text(f"means over {people} annotators with enough labels, {pairs} pairs of them")
    floor = summary.get("dic_rms_floor", float("nan"))
    if floor == floor:
        print_text(
            f"noise of the labels themselves: DIC {summary['dic_floor']:.2f}, rms {floor:.3f}"
        )
    elif pairs:
        print_text("too few common items to estimate the noise of DIC: do not rely on it")
