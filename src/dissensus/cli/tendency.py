"""`dissensus tendency`: fit, predict, evaluate, map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ..base.progress import progress_bar
from ..errors import OptionError
from ..pages.terminal import echo, note, show_json
from . import Group
from .files import (
    check_views,
    read_annotations,
    read_questions,
    show_result,
    split_names,
    write_table,
)
from .training import MovingContent
from .verb import READING, Options, command, computed

if TYPE_CHECKING:
    from ..base.names import Names

_READING = tuple(name for name in READING if name != "question")


@click.group(cls=Group)
def tendency() -> None:
    """Predict the label of each annotator (modelling individual annotators).

    \b
    Example:
      dissensus tendency evaluate answers.csv --inputs texts.csv
      dissensus tendency fit answers.csv --inputs texts.csv -o model
      dissensus tendency predict model more.csv -o predictions.csv
    """


@dataclass(frozen=True, kw_only=True)
class Scoring(Options):
    """Which annotators and pairs of them are scored."""

    min_labels: int = 10
    min_overlap: int = 10
    weights: str = "identity"


@dataclass(frozen=True, kw_only=True)
class Drawn(Options):
    """Which items and annotators are drawn, and which layers."""

    only: str | None = computed("the first items")
    top: int = 12
    among: str | None = computed("all annotators")
    over: Any = "mean"
    raw: bool = False

    def items(self, path: str) -> Names:
        """Return the names of the items."""
        from ..base.names import as_names
        from ..deep.nn.reading import items_of

        return as_names(split_names(self.only) or ()) if self.only else items_of(path)[: self.top]


@command(tendency, time_limit=True, strategy="auto; query for several questions", reading=_READING)
def fit(
    path: str,
    *,
    output: str,
    inputs: str,
    content: MovingContent,
    strategy: str | None = None,
    encoder: str = "auto",
    annotators: str | None = None,
    checkpoints: str | None = None,
    question: str | None = None,
    as_json: bool = False,
    seed: int = 0,
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
    from ..deep.tendency.classifier import TendencyClassifier
    from ..registry import tendencies

    several = question is not None and "," in question
    strategy = strategy or ("query" if several else "auto")
    tendencies.create(strategy)  # before anything is read
    questions = (
        read_questions(path, question or "", **reading)
        if several
        else {"": read_annotations(path, question=question, **reading)}
    )
    annotations = next(iter(questions.values()))
    estimator = TendencyClassifier(strategy, encoder=encoder, seed=seed)
    x = content.read(inputs, annotations.items)
    metadata = _read_annotators(annotators)
    with progress_bar(strategy.partition("[")[0]) as progress:
        estimator.fit(
            x,
            questions if several else annotations,
            metadata=metadata,
            folder=checkpoints,
            resume=checkpoints is not None,
            progress=progress,
        )
    for sentence in estimator.notes_:
        note(sentence)
    estimator.save(output)
    n_labels, n_annotators = sum(map(len, questions.values())), len(estimator.annotators_)
    if as_json:
        show_json(
            {
                "strategy": strategy,
                "n_items": annotations.n_items,
                "n_annotators": n_annotators,
                "n_labels": n_labels,
                "questions": estimator.questions_,
                "classes": estimator.classes_.tolist(),
                "parts": estimator.parts_,
                "folder": output,
            }
        )
        return
    words = ", ".join(f"{name} {share:.2f}" for name, share in estimator.parts_.items())
    note(
        f"{strategy} learned from {n_labels} labels by {n_annotators} annotators on "
        f"{annotations.n_items} items{': ' + words if words else ''}; "
        f"it is in {output}"
    )


@command(tendency, among="all annotators")
def predict(
    model: str,
    inputs: str,
    *,
    output: str = "-",
    among: str | None = None,
    content: MovingContent,
    question: str | None = None,
) -> None:
    """Predict the labels of annotators on INPUTS, by a MODEL of `fit`.

    The table has a row for every item and annotator. Of a model of several questions, --question
    chooses one.

    \b
    Example:
      dissensus tendency predict model more.csv -o predictions.csv
    """
    from ..deep.tendency.classifier import TendencyClassifier

    check_views(output, None)
    estimator = TendencyClassifier.load(model).asked(question)
    items = content.items(inputs)
    x = content.read(inputs, items)
    with progress_bar("encoding") as progress:
        table = estimator.prediction_columns(x, items, split_names(among), progress=progress)
    write_table(table, output)


@command(tendency, time_limit=True, strategies="auto", reading=READING)
def evaluate(
    path: str,
    *,
    inputs: str,
    content: MovingContent,
    strategies: tuple[str, ...] = (),
    scoring: Scoring,
    held_out: float = 0.2,
    load: str | None = None,
    encoder: str = "auto",
    annotators: str | None = None,
    as_json: bool = False,
    seed: int = 0,
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
    from ..deep.tendency.classifier import TendencyClassifier
    from ..deep.tendency.comparison import compare_tendencies, score_tendency
    from ..registry import tendencies

    if load and strategies:
        raise OptionError("--load scores a fitted model; leave out -s, or --load")
    for spec in strategies:
        tendencies.create(spec)  # before anything is read
    annotations = read_annotations(path, **reading)
    x = content.read(inputs, annotations.items)
    if load:
        estimator = TendencyClassifier.load(load).asked(reading["question"])
        with progress_bar("encoding"):
            compared = score_tendency(estimator, x, annotations, name=load, **vars(scoring))
    else:
        metadata = _read_annotators(annotators)
        with progress_bar("comparing") as progress:
            compared = compare_tendencies(
                annotations,
                x,
                strategies or ("auto",),
                encoder=encoder,
                held_out=held_out,
                metadata=metadata,
                seed=seed,
                progress=progress,
                **vars(scoring),
            )
    for sentence in compared.notes:
        note(sentence)
    show_result(compared, as_json=as_json)


@command(tendency, reading=READING)
def map_(
    model: str,
    path: str,
    *,
    output: str = "maps",
    drawn: Drawn,
    annotations: str | None = None,
    content: MovingContent,
    as_json: bool = False,
    seed: int = 0,
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
    from ..deep.tendency.attention_page import maps_of
    from ..deep.tendency.classifier import TendencyClassifier
    from ..deep.tendency.maps import query_model

    estimator = TendencyClassifier.load(model).asked(reading["question"])
    query_model(estimator.model_)  # before anything is read
    names = split_names(drawn.among)
    estimator.annotator_codes(names)
    items = drawn.items(path)
    x = content.read(path, items)
    crowd = read_annotations(annotations, **reading) if annotations else None
    with progress_bar("encoding") as progress:
        report = maps_of(
            estimator,
            x,
            items,
            among=names,
            annotations=crowd,
            layers=drawn.over,
            raw=drawn.raw,
            seed=seed,
            progress=progress,
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
