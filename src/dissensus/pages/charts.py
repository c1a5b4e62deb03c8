"""Charts as Vega-Lite dictionaries: pictures (.svg, .png) or a page that needs no network (.html).

Colours of texts and axes are left to the page, which knows whether it is dark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..base.files import atomic_file
from ..base.storage import as_rows
from ..errors import OptionError
from .embedding import fill

BLUE, ORANGE, GREY, RED = "#2f6fde", "#e07b39", "#9aa4b2", "#d1495b"
COLOURS = (
    BLUE,
    ORANGE,
    "#3a9d6e",
    "#8e5bb5",
    "#b5504f",
    "#1f9fb0",
    "#c4a000",
    "#7a5c45",
)  # of classes
VERDICT_COLOURS = {  # by verdict, the worst first; they differ in lightness, too
    "random": RED,
    "constant": "#8b1a1a",
    "reversed": "#8a63b8",
    "likely random": "#edae49",
    "too few labels": GREY,
    "noisy": "#66a182",
    "harsh": "#1d6996",
    "lenient": "#38a6a5",
    "central": "#5f4690",
    "extreme": "#94346e",
    "attentive": "#5b9bd5",
}
PERCENT = {"format": ".0%", "tickCount": 6}
_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # a name; nothing is fetched

_MAX_NAMED = 60  # annotators, above which they are counted
_ENDINGS = (".svg", ".png", ".html")
_WIDTH = 520  # pixels of a chart that would fill its page, where there is no page


# In a notebook, texts and lines have the colour of the page, light or dark.
_TEXTS = {"labelColor": "currentColor", "titleColor": "currentColor"}
_INHERITED: dict[str, Any] = {
    "axis": _TEXTS | {"gridColor": "#8884", "tickColor": "#8888", "domainColor": "#8888"},
    "legend": _TEXTS,
    "title": {"color": "currentColor", "subtitleColor": "currentColor"},
    "view": {"stroke": "#8884"},
    "rule": {"color": "currentColor"},
    "text": {"color": "currentColor"},
}


@dataclass(frozen=True, repr=False)
class Figure:
    """A chart with its caption.

    Attributes
    ----------
    title, words
        What it is, and what it shows in a sentence.
    spec
        The Vega-Lite specification.
    numbers
        The same as a table, the head first, for those who see no picture; empty where the page
        has such a table anyway.
    """

    title: str
    words: str
    spec: dict[str, Any]
    numbers: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", as_own_names(self.spec))

    def save(self, path: str | Path) -> None:
        """Write it as .svg, .png or .html."""
        save_chart(self.spec, path)

    def __repr__(self) -> str:
        return f"<Figure: {self.title}. {self.words}>"

    def _repr_html_(self) -> str:
        import vl_convert

        own = self.spec.get("config", {})
        config = {
            name: {**_INHERITED.get(name, {}), **own.get(name, {})} for name in _INHERITED | own
        }
        picture = vl_convert.vegalite_to_svg(
            {**_fixed(self.spec), "background": None, "config": config}
        )
        return (
            f'<figure style="margin:0;color:inherit"><figcaption dir="auto"><strong>'
            f"{escape(self.title)}.</strong> {escape(self.words)}</figcaption>{picture}</figure>"
        )


# What every object of a script has: as a name in data they are taken for it.
_RESERVED = {
    *("__proto__", "constructor", "toString", "valueOf", "hasOwnProperty", "toLocaleString"),
    *("isPrototypeOf", "propertyIsEnumerable", "__defineGetter__", "__defineSetter__"),
    *("__lookupGetter__", "__lookupSetter__"),
}
_UNSEEN = "\u200b"  # a space without width; charts.js takes it off again


def as_own_names(spec: Any) -> Any:
    """Return a chart in which no text is the name of what objects of a script have."""
    if isinstance(spec, Mapping):
        return {name: as_own_names(value) for name, value in spec.items()}
    if isinstance(spec, (list, tuple)):
        return [as_own_names(value) for value in spec]
    return spec + _UNSEEN if isinstance(spec, str) and spec in _RESERVED else spec


def chart(rows: Sequence[Mapping[str, Any]], **options: Any) -> dict[str, Any]:
    """Return a chart of rows that is as wide as its container."""
    return {"$schema": _SCHEMA, "data": {"values": rows}, "width": "container", **options}


def number(field: str, title: str | None = None, **options: Any) -> dict[str, Any]:
    """Return the encoding of a number."""
    return {"field": field, "type": "quantitative", "title": title, **options}


def share(field: str, title: str | None) -> dict[str, Any]:
    """Return the encoding of a share, from 0 to 100 %."""
    return number(field, title, axis=PERCENT, scale={"domain": [0, 1]})


def colour(field: str, palette: Mapping[str, str], **legend: Any) -> dict[str, Any]:
    """Return the encoding of a category by its colour, with a legend on top."""
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "scale": {"domain": [*palette], "range": [*palette.values()]},
        "legend": {"orient": "top", **legend},
    }


def tooltip(**formats: str) -> list[dict[str, str]]:
    """Return fields to show on hovering, with the format of numbers."""
    return [{"field": name, **({"format": form} if form else {})} for name, form in formats.items()]


def diagonal(x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    """Return a layer with a dashed line from 0 to 1."""
    return {
        "data": {"values": [{x["field"]: value, y["field"]: value} for value in (0, 1)]},
        "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY},
        "encoding": {"x": x, "y": y},
    }


def dots(
    x: dict[str, Any],
    y: dict[str, Any],
    tooltip: Sequence[Mapping[str, str]],
    *,
    along: str = "y",
    **mark: Any,
) -> list[dict[str, Any]]:
    """Return layers with dots and their intervals, fields `low` and `high`, along an axis."""
    encoding = {"x": x, "y": y}
    ends = {**encoding, along: {**encoding[along], "field": "low"}, f"{along}2": {"field": "high"}}
    return [
        {"mark": {"type": "rule", "opacity": 0.55, **mark}, "encoding": ends},
        {
            "mark": {"type": "circle", "size": 60, "opacity": 0.95, **mark},
            "encoding": {**encoding, "tooltip": tooltip},
        },
    ]


def histogram(edges: Any, counts: Any, title: str, **x: Any) -> dict[str, Any]:
    """Return how many items have which value."""
    return chart(
        as_rows({"from": edges[:-1], "to": edges[1:], "items": counts}),
        height=200,
        mark={"type": "bar", "tooltip": True, "color": BLUE},
        encoding={
            "x": number("from", title, bin={"binned": True}, **x),
            "x2": {"field": "to"},
            "y": number("items", "items"),
        },
    )


def _fixed(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a chart with a width of its own."""
    return {**spec, "width": _WIDTH} if spec.get("width") == "container" else spec


def check_chart(path: str | Path) -> str:
    """Return the ending of a chart's file, or raise an error that lists the possible ones."""
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        raise OptionError(f"{path}: a chart ends in {', '.join(_ENDINGS)}")
    return ending


def save_chart(spec: dict[str, Any], path: str | Path) -> None:
    """Write a chart as a picture or a page, by the ending of the file."""
    import vl_convert

    ending = check_chart(path)
    spec = as_own_names(spec)
    fixed = _fixed(spec)
    with atomic_file(path) as draft:
        if ending == ".png":
            draft.write_bytes(vl_convert.vegalite_to_png(fixed, scale=2))
        elif ending == ".svg":
            draft.write_text(vl_convert.vegalite_to_svg(fixed), encoding="utf-8")
        else:
            page = fill("chart.html", spec, scripts=("chart.js",), styles=(), charts=True)
            draft.write_text(page, encoding="utf-8")


def has_names(annotators: Sized) -> bool:
    """Return whether so many annotators are drawn one by one."""
    return len(annotators) <= _MAX_NAMED


def verdicts_chart(
    columns: Mapping[str, Any], palette: Mapping[str, str], measure: str, title: str, step: float
) -> dict[str, Any]:
    """Return annotators by a measure with intervals, the lowest first; many are counted in steps.

    Columns are annotator, verdict, low, high, the measure, which is at least -1 and at most 1, and
    others to be shown of an annotator.
    """
    tones = colour("verdict", palette, symbolOpacity=1, columns=3)
    value, verdict = np.asarray(columns[measure]), columns["verdict"].tolist()
    if not has_names(value):
        bins = np.clip(np.floor(value / step + 1e-9), -1 / step, 1 / step - 1).round().astype(int)
        counts = Counter(zip(bins.tolist(), verdict, strict=True))
        rows = [
            {"from": low, "to": high, "verdict": word, "annotators": count}
            for (k, word), count in sorted(counts.items())
            for low, high in [(round(k * step, 3), round((k + 1) * step, 3))]
        ]
        x = number("from", title, bin={"binned": True}, axis={"tickCount": 10})
        y = number("annotators", "annotators", stack="zero")
        encoding = {"x": x, "x2": {"field": "to"}, "y": y, "color": tones}
        mark = {"type": "bar", "tooltip": {"content": "data"}}
        return chart(rows, height=220, mark=mark, encoding=encoding)
    order = np.argsort(value, kind="stable")
    table = {name: values[order] for name, values in columns.items()}
    for name in (measure, "low", "high"):
        table[name] = table[name].round(3)
    at_zero = {"condition": {"test": "datum.value === 0", "value": 3}, "value": 1}
    ticks = {"tickCount": 10, "gridWidth": at_zero}
    x = number(measure, title, axis=ticks, scale={"nice": False})
    axis = {"labelLimit": 140, "ticks": False, "labelOverlap": False}
    names = table["annotator"].tolist()
    y = {"field": "annotator", "type": "nominal", "sort": names, "title": "annotator", "axis": axis}
    forms = dict.fromkeys(("annotator", "verdict", *columns), "")
    forms |= dict.fromkeys((measure, "low", "high"), ".2f")
    layers = dots(x, y, tooltip(**forms), along="x", cursor="pointer")
    height = len(order) * max(12, min(20, 400 // len(order)))
    return chart(as_rows(table), height=height, encoding={"color": tones}, layer=layers)
