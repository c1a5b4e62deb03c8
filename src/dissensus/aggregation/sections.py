"""Figures and tables: methods side by side, expected accuracy, confidences, annotators."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import Floats
from ..pages import charts
from ..pages.charts import (
    BLUE,
    ORANGE,
    PERCENT,
    VERDICT_COLOURS,
    Figure,
    chart,
    dots,
    number,
    tooltip,
)
from ..pages.sections import CONFIDENT, Section, Table
from ..pages.wording import formatted, percent, titles
from .aggregation import ClassAggregation

if TYPE_CHECKING:
    from ..quality import AnnotatorScores
    from .comparison import Comparison

_LIKELIHOOD = "log-likelihood of held-out labels"
_MAX_CONTESTED = 5  # items of a comparison
_BOUNDS = ("value", "low", "high")
_BINS = 20
_TITLE = "How far answers follow the items"
_FOLLOWS = "follows (correlation with the others)"
_REVIEW = "less certain"
_CONFIDENT = "certain"


def comparison_sections(comparison: Comparison) -> tuple[Section, ...]:
    """Return the methods, the conclusion, and the items on which they disagree most."""
    methods = comparison.methods
    names = [name for row in methods[:1] if row.evaluation for name in row.evaluation.available]
    words = titles("compared")
    if any(name in words for name in names):
        names = [name for name in names if name in words]
    else:
        words = titles("scores", short=True)
    rows = []
    for row in methods:
        reach = f"±{row.error:.4f}" if math.isfinite(row.error) else ""
        gap = f"{row.gap:.4f}{reach}" if reach else "–"
        cost = f"{1000 * row.seconds:3.0f}"  # of one width, whatever the machine
        scores = row.evaluation.available if row.evaluation else {}
        cells = [_scored(name, scores.get(name), full=name == names[0]) for name in names]
        if row.held_out is None or row.agreement is None:
            rows.append((row.method, f"{row.distance:.4f}", gap, cost, *cells))
            continue
        measured = formatted(row.held_out, ".4f"), gap, formatted(100 * row.agreement, ".1f")
        memory = [] if names else [f"{row.megabytes:5.1f}"]
        rows.append((row.method, *measured, cost, *memory, *cells))
    if comparison.by_distance:
        caption = f"{comparison.kind}: distance to {comparison.n_scored} answers left out"
        heads = ["method", "distance", "behind\nbest", "ms"]
    else:
        caption = f"{comparison.n_scored} held-out labels predicted by {len(methods)} methods"
        heads = [
            "method",
            "log\nlik.",
            "behind\nbest",
            "with\nmost %",
            "ms",
            *([] if names else ["MB"]),
        ]
    table = Table(caption, [*heads, *(words[name] for name in names)], rows)
    disagree = [
        (entry.item, "; ".join(f"{label}: {len(by)}" for label, by in entry.labels.items()))
        for entry in comparison.contested[:_MAX_CONTESTED]
    ]
    sections = [
        Section("methods", "Methods", panels=[[table]]),
        Section("verdict", "Verdict", text=comparison.sentences),
    ]
    if disagree:
        caption = "Items on which they disagree most"
        heads = ["item", "methods by label"]
        items = Table(caption, heads, disagree, n_texts=2, framed=False)
        sections.append(Section("contested", "Contested items", panels=[[items]]))
    return tuple(sections)


def _scored(name: str, score: Any, *, full: bool) -> str:
    """Return a score as a cell, perhaps with its interval; accuracies in percent."""
    if score is None:
        return "–"
    scale, form = (100, ".1f") if name == "accuracy" else (1, ".3f")
    value, low, high = (formatted(scale * bound, form) for bound in score)
    return f"{value} ({low}–{high})" if full and "–" not in (low, high) else value


def methods_figure(comparison: Comparison | None) -> Figure | None:
    """Return methods as dots with intervals: accuracy if known, else distance to the best."""
    if comparison is None:
        return None
    has_truth = not comparison.by_distance and all(row.evaluation for row in comparison.methods)
    if not has_truth and not comparison.n_scored:
        return None
    rows = []
    for row in comparison.methods:
        score = row.evaluation.scores.get("accuracy") if has_truth and row.evaluation else None
        reach = 2 * row.error if math.isfinite(row.error) else 0.0
        bounds = (-row.gap, -row.gap - reach, -row.gap + reach)
        if comparison.by_distance:
            bounds = (row.gap, row.gap - reach, row.gap + reach)
        if score is not None:
            bounds = (score.value, score.low, score.high)
        rows.append({"method": row.method, **dict(zip(_BOUNDS, bounds, strict=True))})
    compared = "distance to answers left out" if comparison.by_distance else _LIKELIHOOD
    title = "items labelled right" if has_truth else f"{compared}, to the best"
    axis = {**(PERCENT if has_truth else {"tickCount": 6}), "labelFlush": False}
    x = number("value", title, scale={"zero": False}, axis=axis)
    order = [point["method"] for point in rows]
    y = {"field": "method", "type": "nominal", "sort": order, "title": "method"}
    hover = tooltip(method="", **dict.fromkeys(_BOUNDS, ".1%" if has_truth else ".4f"))
    layers = dots(x, {**y, "axis": {"labelLimit": 200}}, hover, along="x", color=BLUE, opacity=1)
    spec = chart(rows, height=max(26 * len(rows), 60), layer=layers)
    words = (
        "Share of items labelled right, with 95% intervals."
        if has_truth
        else f"Mean {compared} less that of the best, ± 2 standard errors."
    )
    return Figure("Comparison of methods", words, spec)


def confidence_figure(result: ClassAggregation) -> Figure | None:
    """Return how many items have which confidence; `None` where it cannot be told of any."""
    confidence = result.confidence[result.answers.labels_per_item > 0]
    if len(confidence) and np.isnan(confidence).all():
        return None
    confidence = confidence[~np.isnan(confidence)]
    return confidence_histogram(confidence, "labels", "confidence in the label", "items")


def annotators_figure(scores: AnnotatorScores, hint: str = "") -> Figure | None:
    """Return how far answers follow the items: intervals, or a histogram of many annotators."""
    follow = scores.basis.following
    defined = np.flatnonzero(~np.isnan(follow.correlation))
    if not len(defined):
        return None
    verdicts = scores.verdict_counts
    palette = {word: tone for word, tone in VERDICT_COLOURS.items() if word in verdicts}
    words = ", ".join(f"{word} {count}" for word, count in verdicts.items())
    words = f"Number of annotators by verdict: {words}."
    if len(defined) < sum(verdicts.values()):
        words += " Those whose correlation is undefined are not shown."
    columns = {
        "annotator": scores.annotations.annotators[defined],
        "labels": scores.behaviour.labels[defined].astype(int),
        "follows": follow.correlation[defined],
        "low": follow.low[defined],
        "high": follow.high[defined],
        "verdict": scores.verdict[defined],
    }
    spec = charts.verdicts_chart(columns, palette, "follows", _FOLLOWS, 0.1)
    if charts.has_names(defined):
        words += f" Lines are 95% intervals{hint}."
    return Figure(_TITLE, words, spec)


def confidence_histogram(confidence: Floats, of: str, axis: str, rows_of: str) -> Figure:
    """Return how many rows have which confidence."""
    edges = np.linspace(0, 1, _BINS + 1).round(6)
    index = np.minimum((np.clip(confidence, 0, 1) * _BINS + 1e-9).astype(int), _BINS - 1)
    counts = np.bincount(index, minlength=_BINS)
    spec = charts.histogram(edges, counts, axis, axis=PERCENT, scale={"domain": [0, 1]})
    spec["encoding"]["y"]["title"] = rows_of
    rows: list[dict[str, Any]] = spec["data"]["values"]
    for row in rows:
        row["kind"] = _REVIEW if row["from"] < CONFIDENT - 1e-9 else _CONFIDENT
    spec["encoding"]["color"] = charts.colour("kind", {_REVIEW: ORANGE, _CONFIDENT: BLUE})
    below = float((confidence < CONFIDENT).mean()) if len(confidence) else 0.0
    numbers = [
        (f"{percent(row['from'])} to {percent(row['to'])}", str(row["items"]))
        for row in rows
        if row["items"]
    ]
    words = f"Confidence is below {CONFIDENT:.0%} for {percent(below)} of the {rows_of}."
    return Figure(f"Confidence in the {of}", words, spec, ((axis, rows_of), *numbers))
