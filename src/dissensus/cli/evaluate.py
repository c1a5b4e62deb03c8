"""`dissensus evaluate`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from ..answers import KINDS
from ..base.progress import progress_bar
from ..base.storage import as_plain
from ..errors import DataError, OptionError
from ..pages.terminal import (
    interval,
    note,
    number,
    print_scores,
    print_table,
    print_text,
    show_json,
)
from ..pages.wording import titles
from .files import read_annotations, read_known
from .verb import options

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from ..deep.recovery.evaluation import SoftEvaluation

_NEED_PROBABILITIES = {"log_loss", "ece"}


@click.command()
@click.argument("pred")
@options(
    (
        *("truth", "soft", "dic", "annotations", "spelling", "scale"),
        *("kind", "inputs", "min_overlap", "weights", "repeats", "json", "seed"),
    ),
    min_overlap=10,
    weights="identity",
    repeats=1000,
)
def evaluate(
    pred: str,
    truth: str | None,
    soft: bool,
    dic: bool,
    annotations: str | None,
    spelling: str,
    scale: str,
    kind: str | None,
    inputs: str | None,
    repeats: int,
    as_json: bool,
    seed: int,
    **options: Any,
) -> None:
    """Score labels against known labels, or distributions against the votes of annotators.

    PRED is the output of `aggregate`: a table, or the label file of a folder (.npy). The known
    labels may cover a part of the items. Classes are scored by accuracy, F1 and calibration,
    numbers by errors and correlations, spans and boxes by F1, masks by intersection over union,
    texts by word error rate, rankings by Kendall's tau, sets by Jaccard index and F1. With --soft,
    probabilities are scored against the votes in --annotations. With --dic, PRED is the output of
    `tendency predict`, scored against the labels of every annotator. Intervals are 95 % bootstrap
    intervals over items.

    \b
    Example:
      dissensus evaluate labels.csv --truth truth.csv
      dissensus evaluate shares.csv --soft --annotations answers.csv
      dissensus evaluate predictions.csv --dic --annotations answers.csv
    """
    resampling = {"resamples": repeats, "seed": seed}
    if annotations is not None and truth is not None:
        raise OptionError("--truth and --annotations: give one of them")
    if annotations is not None and dic:
        crowd = read_annotations(annotations, scale=scale, spelling=spelling)
        _evaluate_annotators(pred, crowd, options, repeats=repeats, as_json=as_json, seed=seed)
    elif annotations is not None:
        from ..deep.recovery.evaluation import evaluate_named
        from ..formats import read_predictions

        predicted = read_predictions(pred, scale="nominal")
        crowd = read_annotations(annotations, scale=scale, spelling=spelling)
        crowd.check_classes("a distribution")
        ordered = crowd.scale == "ordinal"
        with progress_bar("resampling"):
            soft_scores = evaluate_named(predicted, crowd, ordered=ordered, **resampling)
        show_soft(soft_scores, as_json)
    elif soft or dic:
        raise OptionError("--soft and --dic compare with all labels; give --annotations FILE")
    elif truth is None:
        raise OptionError("score against what? --truth FILE, or --annotations FILE")
    else:
        from .. import metrics

        predicted, truth_values = _read(pred, truth, kind, inputs, scale=scale, spelling=spelling)
        with progress_bar("resampling"):
            evaluation = metrics.evaluate(predicted, truth_values, **resampling)
        if as_json:
            show_json(evaluation.as_dict())
        else:
            if evaluation.kind in KINDS:
                note(f"{evaluation.kind}: {evaluation.n_scored} items")
            evaluation.show()


def _read(
    pred: str, truth: str, kind: str | None, inputs: str | None, *, scale: str, spelling: str
) -> tuple[Any, Any]:
    """Return predictions and what is known, of the kind of the predictions."""
    from ..formats import read_predictions, read_truth
    from ..formats.spellings import truth_spelled
    from ..metrics import Things

    kind_of_answers = _other_kind(pred, truth, kind)
    if kind_of_answers is not None:
        predicted = read_truth(pred, kind=kind_of_answers, inputs=inputs)
        scored = predicted if hasattr(predicted, "kind") else Things(predicted)
        return scored, read_truth(truth, kind=kind_of_answers, inputs=inputs)
    labels, known_labels = read_predictions(pred, scale=scale), read_known(truth) or {}
    if hasattr(labels, "classes"):
        known_labels, notes = truth_spelled(known_labels, labels.items, labels.classes, spelling)
        for sentence in notes:
            note(sentence)
    return labels, known_labels


def _other_kind(pred: str, truth: str, kind: str | None) -> str | None:
    """Return the kind of predictions that are neither classes nor numbers."""
    from pathlib import Path

    from ..answers import KINDS
    from ..formats.columns import as_kind
    from ..formats.known import kind_of_truth

    kind_of_answers = as_kind(kind)
    if kind_of_answers is None and Path(pred).is_file() and Path(truth).is_file():
        kind_of_answers = kind_of_truth(pred)
    return kind_of_answers if kind_of_answers in KINDS else None


def show_soft(evaluation: SoftEvaluation, as_json: bool) -> None:
    """Print scores of distributions with floor and ceiling, or as JSON."""
    if as_json:
        show_json(evaluation.as_dict())
        return
    rows = [
        (
            words,
            number(score.value, 4),
            interval(score.low, score.high),
            number(evaluation.floor[name], 4),
            number(evaluation.ceiling[name], 4),
        )
        for name, words in titles("soft scores").items()
        if (score := evaluation.scores.get(name))
    ]
    title = f"{evaluation.n_items} items scored, {evaluation.votes_per_item:.1f} votes each"
    print_table(("score", "value", "95 % interval", "one for\nall", "people\nagain"), rows, title)
    _print_count(evaluation.n_without_votes, "predicted items have no annotations")
    _print_count(evaluation.n_without_prediction, "annotated items have no prediction")


def _print_count(count: int, words: str) -> None:
    if count:
        print_text(f"{count} {words}")


def _evaluate_annotators(
    pred: str,
    crowd: Annotations,
    options: dict[str, Any],
    *,
    repeats: int,
    as_json: bool,
    seed: int,
) -> None:
    from ..deep.tendency.dic import dic_interval
    from ..deep.tendency.scores import score
    from ..formats.predictions import read_annotator_predictions
    from ..metrics import Score

    predictions = read_annotator_predictions(pred)
    crowd.check_classes("evaluate --dic")
    is_predicted = predictions.rows(crowd) >= 0
    if not is_predicted.any():
        raise DataError(
            f"none of the {len(crowd)} labels is among the {len(predictions.annotations)} "
            "predictions; are items and annotators named alike?"
        )
    crowd = crowd.keep(is_predicted)
    crowd = crowd.subset(items=crowd.labels_per_item > 0)
    log_probability = predictions.log_probability(crowd)
    scores = score(crowd, log_probability, seed=seed, **options)
    unknown = _NEED_PROBABILITIES if predictions.probability is None else set()
    summary = {name: value for name, value in scores.summary().items() if name not in unknown}
    predicted = crowd.with_codes(label=log_probability.argmax(axis=1))
    with progress_bar("resampling"):
        spans = dic_interval(crowd, predicted, resamples=repeats // 5, seed=seed, **options)
    if as_json:
        content = scores.as_dict()
        content["summary"] = {k: v for k, v in content["summary"].items() if k in summary}
        content["intervals"] = {name: as_plain([*span[1:]]) for name, span in spans.items()}
        show_json(content)
        return
    without = {name: Score(value, math.nan, math.nan) for name, value in summary.items()}
    spans = {
        name: span._replace(value=summary[name]) for name, span in spans.items() if name in summary
    }
    title = f"{len(crowd)} labels on {crowd.n_items} items"
    print_scores(without | spans, titles("annotators"), title)
    print_text(f"{int(summary['n_pairs_used'])} pairs of annotators with enough common items")
    if not is_predicted.all():
        note(f"{int((~is_predicted).sum())} labels were not predicted, and are left out")
