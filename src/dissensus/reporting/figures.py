"""Charts of a report: class shares, values, confidence, calibration, correlation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..aggregation.aggregation import ClassAggregation
from ..aggregation.sections import annotators_figure, confidence_figure
from ..answers.gold import gold_codes
from ..base.arrays import Floats
from ..base.probability import proportion
from ..base.storage import as_rows
from ..judging.sections import section_figures
from ..metrics.sections import confusion_figure, pairs_figure
from ..pages import charts
from ..pages.charts import BLUE, GREY, PERCENT, Figure
from ..pages.wording import percent
from ..quality.scores import Scored, find_score, score
from ..quality.sections import annotator_pair, score_pair
from .parts import part
from .tendency_section import predictions_figure

if TYPE_CHECKING:
    from ..answers.annotations import Annotations
    from .report import Report

_MAX_CLASSES = 40
_BINS = 20  # of values


@part
def figures(report: Report) -> dict[str, Figure | None]:
    """Return every chart for which there are numbers, by name."""
    raise NotImplementedError


@figures.for_kind("classes")
def _of_labels(report: Report) -> dict[str, Figure | None]:
    annotations, label = report.answers, report.answers.label
    shares = {
        "labels given": np.bincount(label, minlength=annotations.n_classes) / max(len(label), 1),
        "labels inferred": class_shares(report.result),
    }
    inferred = shares["labels inferred"]
    common = annotations.classes[int(inferred.argmax())]
    words = f"The most common class is {common}: {percent(float(inferred.max()))} of the items."
    predictions, truth = report.predictions, report.truth
    return {
        "classes": classes_figure(
            ("Class shares, given and inferred", words),
            annotations.classes.tolist(),
            shares,
            order=class_order(annotations, inferred),
            colours=[GREY, BLUE],
        ),
        "confidence": confidence_figure(report.result),
        "calibration": calibration_figure(report.result, truth) if truth else None,
        "annotators": annotators_figure(report.annotator_scores, "; click a dot for the evidence"),
        "annotator scores": annotator_pair(report.annotator_scores),
        "item scores": _hardness_figure(report),
        "confusion": confusion_figure(report.result),
        "agreement": pairs_figure(report.pairs),
        "predictions": None if predictions is None else predictions_figure(predictions),
        **({} if report.judging is None else section_figures(report.judging)),
    }


@figures.for_kind("numbers")
def _of_values(report: Report) -> dict[str, Figure | None]:
    return {
        "values": _values_figure(report.result.value, report.doubt.form),
        "annotators": annotators_figure(report.annotator_scores),
    }


def _values_figure(value: Floats, form: Callable[[float], str]) -> Figure | None:
    """Return the distribution of the estimates."""
    value = value[np.isfinite(value)]
    if not len(value):
        return None
    counts, edges = np.histogram(value, bins=_BINS)
    spec = charts.histogram(edges, counts, "value of an item", axis={"tickCount": 8})
    words = f"From {form(value.min())} to {form(value.max())}, {form(value.mean())} on average."
    rows = spec["data"]["values"]
    numbers = [(f"{form(row['from'])} to {form(row['to'])}", str(row["items"])) for row in rows]
    return Figure("Values of the items", words, spec, (("value", "items"), *numbers))


def _hardness_figure(report: Report) -> Figure | None:
    """Return items by WAUM and the entropy of their labels, where WAUM is given."""
    if not report.hardness:
        return None
    items = report.answers.items
    value = np.array([report.hardness.get(item, np.nan) for item in items.tolist()])
    entropy = score(report.answers, "entropy")
    return score_pair(Scored(find_score("waum"), items, value), entropy)


def class_shares(result: ClassAggregation) -> Floats:
    """Return how common every class is among the labels inferred."""
    label = result.label[result.label >= 0]
    return np.bincount(label, minlength=len(result.classes)) / max(len(label), 1)


def class_order(annotations: Annotations, share: Floats) -> list[int]:
    """Return the most common classes, those on an ordinal scale in their order."""
    common = np.argsort(-share, kind="stable")[:_MAX_CLASSES].tolist()
    return common if annotations.scale == "nominal" else sorted(common)


def classes_figure(
    caption: tuple[str, str],
    classes: Sequence[str],
    shares: Mapping[str, Floats],
    *,
    order: Sequence[int],
    colours: Sequence[str],
) -> Figure:
    """Return how common classes are, by kind of share, in an order."""
    title, words = caption
    if len(order) < len(classes):
        words += f" The {len(order)} most common are shown."
    names, kinds = [classes[k] for k in order], list(shares)
    bars = [
        {"class": classes[k], "share": round(float(values[k]), 6), "of": kind}
        for k in order
        for kind, values in shares.items()
    ]
    y = {"field": "class", "type": "nominal", "sort": names, "title": "class"}
    colour = charts.colour("of", dict(zip(kinds, colours, strict=False)))
    spec = charts.chart(
        bars,
        height=max(28 * len(names), 60),
        mark={"type": "bar"},
        encoding={
            "tooltip": charts.tooltip(**{"class": "", "of": "", "share": ".1%"}),
            "y": {**y, "axis": {"labelLimit": 140}},
            "yOffset": {"field": "of", "sort": kinds},
            "x": charts.number("share", "share", axis=PERCENT),
            "color": {**colour, "sort": kinds},
        },
    )
    rows = [(classes[k], *(percent(float(values[k])) for values in shares.values())) for k in order]
    return Figure(title, words, spec, (("class", *shares), *rows))


def calibration_figure(result: ClassAggregation, truth: Mapping[str, str]) -> Figure | None:
    """Return how often labels of some confidence are right."""
    annotations = result.answers
    classes, items = set(annotations.classes.tolist()), set(annotations.items.tolist())
    known_labels = {
        item: label for item, label in truth.items() if label in classes and item in items
    }
    codes = gold_codes(annotations, known_labels)
    if codes is None:
        return None
    scored = np.flatnonzero((codes >= 0) & (result.label >= 0) & result.is_identifiable)
    if not len(scored):
        return None
    confidence, right = result.confidence[scored], (result.label == codes)[scored]
    index = np.minimum((confidence * 10).astype(int), 9)
    size = np.bincount(index, minlength=10).astype(float)
    total = np.bincount(index, confidence, minlength=10)
    correct = proportion(np.bincount(index, right, minlength=10).astype(float), size, 0.95)
    filled = np.flatnonzero(size)
    columns = {
        "confidence": total[filled] / size[filled],
        "right": correct.value[filled],
        "low": correct.low[filled],
        "high": correct.high[filled],
        "items": size[filled].astype(int),
    }
    rows = as_rows(columns)
    x, y = (
        charts.share("confidence", "confidence in the label"),
        charts.share("right", "labels that are right"),
    )
    tooltip = charts.tooltip(confidence=".1%", right=".1%", items="")
    layers = [charts.diagonal(x, y), *charts.dots(x, y, tooltip, color=BLUE, opacity=1)]
    numbers = [
        (
            percent(row["confidence"]),
            percent(row["right"]),
            f"{percent(row['low'])} to {percent(row['high'])}",
            str(row["items"]),
        )
        for row in rows
    ]
    words = "On the dashed line, labels are right as often as their confidence says."
    head = ("confidence", "right", "95% interval", "items")
    return Figure(
        "Calibration", words, charts.chart(rows, height=240, layer=layers), (head, *numbers)
    )
