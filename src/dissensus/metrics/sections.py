"""Agreement as people see it: its tables, and figures of classes and pairs of annotators."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import Integers
from ..base.probability import normalize
from ..errors import Note
from ..pages.charts import BLUE, Figure, chart, dots, number, tooltip
from ..pages.sections import Section, Table
from ..pages.wording import amount, formatted, interval, percent, titles

if TYPE_CHECKING:
    from ..aggregation.aggregation import ClassAggregation
    from . import Agreement, Pairs

_MAX_CLASSES = 40
_WRITTEN = 12  # classes up to which shares stand in the cells
_UPRIGHT = 60  # characters of all classes up to which their names stand upright
_MAX_PAIRS = 10  # in the table
_MAX_ANNOTATORS = 60  # in a heat map
_KNOWN = 0.5  # share of its cells, below which there is no heat map
_SIZE = 560  # pixels of a heat map
_MOST = 15  # rows of a breakdown
_WIDE = 8  # annotators up to which the pairs are a matrix
_BREAKDOWNS = {
    "item": "Items, those with least agreement first",
    "annotator": "Agreement with others, and measures without this annotator",
    "class": "Every class against the rest",
    "option": "Every option, chosen or not",
}
_DISTANCES = "Mean distance, the largest first"


def agreement_sections(agreement: Agreement) -> tuple[Section, ...]:
    """Return the measures with their breakdown, remarks, and people and models apart."""
    noun = "labels" if agreement.scale else "answers"
    rows = [
        (
            agreement.title_of(estimate.measure),
            formatted(estimate.value, ".3f"),
            interval(estimate.low, estimate.high, ".3f") or "–",
            formatted(estimate.error, ".3f"),
        )
        for estimate in agreement.estimates
    ]
    caption = (
        f"{agreement.n_labels} {noun} by {agreement.n_annotators} annotators; "
        f"{agreement.n_paired} items have two or more"
    )
    first_head = "mean over options" if agreement.by == "option" else "measure"
    heads = (first_head, "value", f"{100 * agreement.confidence:g} % interval", "error")
    panels = [[Table(caption, heads, rows)]]
    remarks: list[str] = []
    if agreement.parts:
        parts = [
            (part.name, str(part.n_labels), *(formatted(x, ".3f") for x in part.values.values()))
            for part in agreement.parts[:_MOST]
        ]
        by = agreement.by or ""
        caption = _BREAKDOWNS[by] if agreement.scale else _DISTANCES
        panels.append([Table(caption, (by, noun, *agreement.parts[0].values), parts)])
        if len(agreement.parts) > _MOST:
            hidden = f"{len(agreement.parts) - _MOST} more"
            remarks = [Note(hidden, remedy="{} FILE writes all.", output=...)]
    sections = [
        Section("agreement", "Agreement", panels=panels),
        Section("words", "In words", text=(*remarks, *agreement.sentences), notes=agreement.notes),
    ]
    if agreement.kinds:
        columns = [
            (
                row.between,
                str(row.pairs),
                formatted(row.percent, ".3f"),
                formatted(row.kappa, ".3f"),
            )
            for row in agreement.kinds
        ]
        caption = "People and models, means over pairs of annotators"
        table = Table(
            caption, ("between", "pairs", "percent", titles("agreement")["cohen"]), columns
        )
        sections.append(Section("kinds", "People and models", panels=[[table]]))
    return tuple(sections)


def pairs_sections(pairs: Pairs) -> tuple[Section, ...]:
    """Return the agreement of pairs as a matrix, or those who agree least, and their mean."""
    least, order = f"at least {pairs.min_overlap} common items", pairs.order().tolist()
    if len(order) <= _WIDE:
        names, full = [str(pairs.annotators[code]) for code in order], pairs.matrix()
        rows = [
            (name, *(formatted(full[code, column], ".3f") for column in order))
            for name, code in zip(names, order, strict=True)
        ]
        table = Table(f"{_measure(pairs)}, {least}", ("", *names), rows)
    else:
        rows = [
            (row["one"], row["other"], f"{row['items']:.0f}", formatted(row["value"], ".3f"))
            for row in pairs.rows()[:_MOST]
        ]
        heads = ("one", "other", "items", _measure(pairs))
        table = Table(f"Pairs who agree least, {least}", heads, rows, n_texts=2)
    text = (
        f"{int(pairs.known.sum())} of {len(pairs)} pairs with common items have {least}; "
        f"mean {formatted(pairs.mean, '.3f')}."
    )
    return Section("pairs", "Pairs", panels=[[table]]), Section("mean", "In words", text=(text,))


def _measure(pairs: Pairs) -> str:
    return titles("agreement").get(pairs.measure, pairs.measure)


def agreement_figure(agreement: Agreement) -> Figure | None:
    """Return the measures as dots with their intervals."""
    rows: list[dict[str, Any]] = [
        {
            "measure": estimate.measure,
            "value": estimate.value,
            "low": estimate.value if math.isnan(estimate.low) else estimate.low,
            "high": estimate.value if math.isnan(estimate.high) else estimate.high,
        }
        for estimate in agreement.estimates
        if not math.isnan(estimate.value)
    ]
    if not rows:
        return None
    names = [row["measure"] for row in rows]
    lowest = min(0.0, *(row["low"] for row in rows))
    x = number("value", "agreement", scale={"domainMin": lowest, "domainMax": 1})
    y = {"field": "measure", "type": "nominal", "sort": names, "title": "measure"}
    hover = tooltip(measure="", value=".3f", low=".3f", high=".3f")
    layers = dots(x, y, hover, along="x", color=BLUE, opacity=1)
    words = f"Agreement of {amount(agreement.n_annotators, 'annotator')}"
    words += f" is {agreement.word}." if agreement.word else "."
    if agreement.resamples:
        words += f" Lines are {agreement.confidence:.0%} intervals."
    spec = chart(rows, height=max(26 * len(rows), 60), layer=layers)
    return Figure("Agreement of the annotators", words, spec)


def confusion_figure(result: ClassAggregation) -> Figure | None:
    """Return the confusion matrix of all annotators together: inferred against given classes."""
    names = result.classes.tolist()
    if not 2 <= len(names) <= _MAX_CLASSES:
        return None
    is_inferred = np.eye(len(names))[result.label] * (result.label >= 0)[:, None]
    counts = is_inferred.T @ result.answers.votes()
    matrix = normalize(counts)
    rows = [
        {"true": true, "given": label, "share": round(float(value), 4)}
        for true, values in zip(names, matrix, strict=True)
        for label, value in zip(names, values, strict=True)
    ]
    turned = max(map(len, names)) * len(names) > _UPRIGHT
    axis = {"labelLimit": 140, "grid": False}
    encoding = {
        "x": {"field": "given", "type": "nominal", "sort": names, "title": "label given"}
        | {"axis": {**axis, "labelAngle": -40 if turned else 0}},
        "y": {"field": "true", "type": "nominal", "sort": names, "title": "label inferred"}
        | {"axis": axis},
    }
    scale = {"domain": [0, 1], "range": ["#eef4fc", "#0b3d91"]}
    dark = {"condition": {"test": "datum.share > 0.5", "value": "#ffffff"}, "value": "#1b2330"}
    cells = {
        "mark": {"type": "rect", "tooltip": {"content": "data"}},
        "encoding": encoding
        | {"color": number("share", "share", scale=scale, legend={"format": ".0%"})},
    }
    shares = {
        "mark": {"type": "text", "fontSize": 11, "tooltip": {"content": "data"}},
        "encoding": encoding | {"text": number("share", format=".0%"), "color": dark},
    }
    few = len(names) <= _WRITTEN
    height = max(len(names) * (32 if few else 18), 100)
    spec = chart(rows, height=height, layer=[cells, shares] if few else [cells])
    wrong = np.where(np.eye(len(names), dtype=bool), 0, counts)
    true, label = (int(k) for k in np.unravel_index(wrong.argmax(), wrong.shape))
    words = (
        f"The most frequent difference: {amount(int(wrong.max()), 'label')} “{names[label]}” on "
        f"items labelled “{names[true]}” ({percent(float(matrix[true, label]))} of their labels)."
    )
    numbers = [
        (name, *(percent(float(value)) for value in values))
        for name, values in zip(names, matrix, strict=True)
    ]
    table = (("inferred ↓ given →", *names), *numbers) if few else ()
    return Figure("Confusion matrix of all annotators", words, spec, table)


def pairs_figure(pairs: Pairs | None) -> Figure | None:
    """Return the agreement of pairs of annotators; `None` where most cells would be empty."""
    if pairs is None:
        return None
    busiest = _busiest(pairs)
    n_shown, among = len(busiest), np.isin(pairs.one, busiest) & np.isin(pairs.other, busiest)
    if 2 * int((pairs.known & among).sum()) < _KNOWN * n_shown * (n_shown - 1):
        return None
    spec = pairs_chart(pairs)
    caption = spec.pop("title")["subtitle"]
    spec |= {"width": "container", "height": n_shown * spec["height"]["step"]}
    words = f"Those who agree stand next to each other; {caption}."
    return Figure("Agreement between pairs", words, spec)


def pairs_table(pairs: Pairs) -> Table:
    """Return the pairs that agree least, those with many common items first."""
    defined = np.flatnonzero(pairs.known)
    upper = pairs.value[defined] + 2 / np.sqrt(pairs.overlap[defined])
    rows = [
        (
            pairs.annotators[pairs.one[k]],
            pairs.annotators[pairs.other[k]],
            f"{pairs.value[k]:.2f}",
            f"{pairs.overlap[k]:.0f}",
        )
        for k in defined[np.argsort(upper, kind="stable")][:_MAX_PAIRS].tolist()
    ]
    heads = ["annotator", "with", "Cohen's kappa", "common items"]
    return Table(
        caption="Least agreement between pairs, considering how many items they share",
        heads=heads,
        rows=rows,
        n_texts=2,
        details="annotator",
        n_links=2,
    )


def _busiest(pairs: Pairs) -> Integers:
    """Return the annotators with the most co-annotators, by code."""
    defined = pairs.known
    ends = np.concatenate([pairs.one[defined], pairs.other[defined]])
    count = np.bincount(ends, minlength=len(pairs.annotators))
    return np.argsort(-count, kind="stable")[:_MAX_ANNOTATORS]


def pairs_chart(pairs: Pairs) -> dict[str, Any]:
    """Return a heat map of pairs of annotators, those who agree next to each other.

    Beyond sixty annotators, those with the most co-annotators are shown.
    """
    defined, most = pairs.known, set(_busiest(pairs).tolist())
    order = [annotator for annotator in pairs.order().tolist() if annotator in most]
    names = [str(pairs.annotators[annotator]) for annotator in order]
    short = [name if len(name) <= 24 else f"{name[:23]}…" for name in names]
    if len(set(short)) == len(short):
        names = short
    name_of = dict(zip(order, names, strict=True))
    among = defined & np.isin(pairs.one, order) & np.isin(pairs.other, order)
    columns = (
        pairs.one[among],
        pairs.other[among],
        pairs.value[among].round(4),
        pairs.overlap[among],
    )
    cells = [
        {"one": name_of[left], "other": name_of[right], "value": value, "items": round(items)}
        for first, second, value, items in zip(*(part.tolist() for part in columns), strict=True)
        for left, right in ((first, second), (second, first))
    ]
    size = max(min(_SIZE // max(len(order), 1), 40), 9)
    axis = {"labelLimit": 120, "labelOverlap": False, "ticks": False, "domain": False}
    axis |= {"grid": False, "labelFontSize": min(11, max(size - 1, 7))}
    annotator = {"type": "nominal", "sort": names, "scale": {"domain": names}}
    annotator |= {"title": "annotator", "axis": axis}
    ends = [0, 0.5, 1] if pairs.measure == "percent" else [-1, 0, 1]
    scale = {"domain": ends, "range": ["#b2182b", "#f7f7f7", "#2166ac"]}
    total, measure = len(pairs.annotators), _measure(pairs)
    extent = "" if len(order) == total else f"{len(order)} of {total} annotators; "
    subtitle = f"{extent}grey: fewer than {pairs.min_overlap} common items"
    spec = chart(
        cells,
        title={
            "text": f"{measure} of pairs of annotators",
            "subtitle": subtitle,
            "anchor": "start",
        },
        height={"step": size},
        mark={"type": "rect"},
        encoding={
            "x": {**annotator, "field": "one"},
            "y": {**annotator, "field": "other"},
            "color": number("value", scale=scale, legend={"title": measure}),
            "tooltip": tooltip(one="", other="", value=".3f", items=""),
        },
        config={"view": {"fill": "#dcdcdc", "stroke": None}},
    )
    return spec | {"width": {"step": size}}
