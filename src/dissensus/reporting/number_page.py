"""A report on numbers as one page."""

from __future__ import annotations

import math

import numpy as np

from .charts import BLUE, GREY, Figure, chart
from .number_report import NumberReport
from .sections import Cell, Download, Section, Small, Sortable, render_sections
from .sentences import amount

__all__ = ["render_numbers"]

_MOST = 1000  # rows of a table
_MOST_POINTS = 2000
_BINS = 20
_COLOURS = {
    "does not follow the others": "#d1495b",
    "too high": "#edae49",
    "too low": "#8a63b8",
    "scattered": "#66a182",
    "too few answers to say": GREY,
    "fine": "#5b9bd5",
}
_SCORES = {"mae": "mean error", "rmse": "root of the mean squared error"}


def render_numbers(report: NumberReport) -> str:
    """Return the page."""
    charts = {"values": _values(report), "standing": _standing(report)}
    small = [Small("Agreement", ["measure", "value", "95% interval"], _agreement(report))]
    if report.evaluation is not None:
        rows = [
            (_SCORES.get(name, f"correlation ({name.capitalize()})"), *_with_interval(score))
            for name, score in report.evaluation.scores.items()
            if score is not None
        ]
        small.append(Small("Against known values", ["score", "value", "95% interval"], rows))
    return render_sections(
        report.name,
        report.sentences,
        _facts(report),
        [
            Section("data", "What was read", findings=report.check.findings),
            Section("values", "The values", charts=["values"], small=small),
            Section(
                "annotators",
                "The annotators",
                ["Everybody is compared with the mean of the others on the same items."],
                ["standing"],
                sortable=[_annotators(report)],
            ),
            Section("items", "The items", sortable=[_items(report)]),
        ],
        charts={name: one for name, one in charts.items() if one is not None},
        downloads=_downloads(report),
        about={
            "Shift": "By how much an annotator answers higher than the others, on average.",
            "Scatter": "Standard deviation: of an annotator's differences to the others, or of the "
            "answers on an item.",
            "Follows": "Correlation with the mean of the others: 1 goes with them, 0 is unrelated.",
            "Alpha": "Krippendorff's for numbers: 1 is full agreement, 0 is that of chance.",
        },
        made=f"with {report.result.method}, seed {report.seed}",
    )


def _facts(report: NumberReport) -> dict[str, str]:
    alpha = report.alpha.value
    return {
        "annotators": str(report.annotations.n_annotators),
        "items": str(report.annotations.n_items),
        "numbers": str(len(report.annotations)),
        "alpha": "–" if math.isnan(alpha) else f"{alpha:.2f}",
        "items scatter widely": str(len(report.wide)),
    }


def _agreement(report: NumberReport) -> list[tuple[str, ...]]:
    return [("Krippendorff's alpha for numbers", *_with_interval(report.alpha))]


def _with_interval(one: object) -> tuple[str, str]:
    value, low, high = (getattr(one, name) for name in ("value", "low", "high"))
    if math.isnan(value):
        return "–", ""
    return f"{value:.3f}", "" if math.isnan(low) else f"{low:.3f} to {high:.3f}"


def _values(report: NumberReport) -> Figure | None:
    """Return how the estimates are spread."""
    value = report.result.value[np.isfinite(report.result.value)]
    if not len(value):
        return None
    count, edges = np.histogram(value, bins=_BINS)
    rows = [
        {"from": float(edges[k]), "to": float(edges[k + 1]), "items": int(count[k])}
        for k in range(_BINS)
    ]
    x = {
        "field": "from",
        "type": "quantitative",
        "bin": {"binned": True},
        "title": "value of an item",
        "axis": {"tickCount": 8},
    }
    spec = chart(
        rows,
        height=220,
        mark={"type": "bar", "tooltip": True, "color": BLUE},
        encoding={
            "x": x,
            "x2": {"field": "to"},
            "y": {"field": "items", "type": "quantitative", "title": "items"},
        },
    )
    words = f"From {value.min():.3g} to {value.max():.3g}, {value.mean():.3g} on average."
    numbers = (
        ("value", "items"),
        *((f"{row['from']:.3g} to {row['to']:.3g}", str(row["items"])) for row in rows),
    )
    return Figure("Values of the items", words, spec, numbers)


def _standing(report: NumberReport) -> Figure | None:
    """Return shift and scatter of everybody."""
    told = report.standing
    known = np.flatnonzero(np.isfinite(told.scatter))[:_MOST_POINTS]
    if not len(known):
        return None
    rows = [
        {
            "who": report.annotations.annotators[who],
            "shift": float(told.shift[who]),
            "scatter": float(told.scatter[who]),
            "answers": int(told.answers[who]),
            "verdict": told.verdict[who],
        }
        for who in known.tolist()
    ]
    present = [word for word in _COLOURS if word in told.verdict]
    spec = chart(
        rows,
        height=300,
        mark={"type": "circle", "size": 60, "opacity": 0.95},
        encoding={
            "x": {
                "field": "shift",
                "type": "quantitative",
                "title": "answers higher than the others by",
            },
            "y": {"field": "scatter", "type": "quantitative", "title": "scatter around the others"},
            "color": {
                "field": "verdict",
                "type": "nominal",
                "title": None,
                "scale": {"domain": present, "range": [_COLOURS[word] for word in present]},
                "legend": {"orient": "top", "columns": 3, "labelLimit": 240},
            },
            "tooltip": [
                {"field": "who", "title": "annotator"},
                {"field": "verdict"},
                {"field": "answers"},
                {"field": "shift", "format": ".3~g"},
                {"field": "scatter", "format": ".3~g"},
            ],
        },
    )
    words = "To the right: answers too high; far up: differs from the others in both directions."
    return Figure("Annotators beside the others", words, spec)


def _annotators(report: NumberReport) -> Sortable:
    told, names = report.standing, report.annotations.annotators
    worst = [*_COLOURS].index
    order = sorted(
        range(len(names)), key=lambda who: (worst(told.verdict[who]), -told.answers[who])
    )
    heads = [
        *(("annotator", "text"), ("answers", "number"), ("shift", "number")),
        *(("scatter", "number"), ("follows", "number"), ("verdict", "text")),
    ]
    rows: list[list[Cell]] = [
        [
            (names[who], names[who]),
            (str(told.answers[who]), int(told.answers[who])),
            _cell(told.shift[who], "+.3g"),
            _cell(told.scatter[who]),
            _cell(told.follows[who], ".2f"),
            (told.verdict[who], None),
        ]
        for who in order[:_MOST]
    ]
    part = f"{len(rows)} of {amount(len(names), 'annotator')}"
    return Sortable("annotator-table", f"{part}, the worst first", heads, rows)


def _items(report: NumberReport) -> Sortable:
    annotations = report.annotations
    order = np.argsort(-np.nan_to_num(report.scatter), kind="stable")[:_MOST]
    heads = [
        *(("item", "text"), ("value", "number"), ("answers", "number"), ("scatter", "number")),
        *(("least", "number"), ("most", "number")),
    ]
    rows: list[list[Cell]] = []
    for item in order.tolist():
        given = annotations.value[annotations.index[item] : annotations.index[item + 1]]
        rows.append(
            [
                (annotations.items[item], annotations.items[item]),
                _cell(report.result.value[item]),
                (str(len(given)), len(given)),
                _cell(report.scatter[item]),
                _cell(given.min() if len(given) else math.nan),
                _cell(given.max() if len(given) else math.nan),
            ]
        )
    part = f"{len(rows)} of {amount(annotations.n_items, 'item')}"
    return Sortable("item-table", f"{part}, the widest scatter first", heads, rows)


def _cell(value: float, form: str = ".4g") -> Cell:
    return ("–", None) if math.isnan(value) else (f"{value:{form}}", float(value))


def _downloads(report: NumberReport) -> dict[str, Download]:
    def rows(table: object) -> list[list[object]]:
        columns = [column.tolist() for column in table.values()]  # type: ignore[attr-defined]
        return [list(map(_kept, row)) for row in zip(*columns, strict=True)]

    return {
        "values": Download("Download the values (CSV)", [*report.items], rows(report.items)),
        "annotators": Download(
            "Download the annotators (CSV)", [*report.annotators], rows(report.annotators)
        ),
    }


def _kept(value: object) -> object:
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.6g}")
    return value
