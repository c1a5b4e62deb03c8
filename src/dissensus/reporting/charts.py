"""Charts as Vega-Lite dictionaries: pictures (.svg, .png) or a page that needs no network (.html).

Colours of texts and axes are left to the page, which knows whether it is dark.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files import atomic_file
from ..errors import OptionError

if TYPE_CHECKING:
    from ..agreement import Clusters, Pairs

__all__ = [
    "BLUE",
    "GREY",
    "ORANGE",
    "PERCENT",
    "Figure",
    "chart",
    "check_chart",
    "pairs_chart",
    "save_chart",
    "share_bars",
]

BLUE, ORANGE, GREY = "#2f6fde", "#e07b39", "#9aa4b2"
PERCENT = {"format": ".0%", "tickCount": 6}

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # a name; nothing is fetched
_ENDINGS = (".svg", ".png", ".html")
_MOST = 60  # annotators in a heat map
_ROOM = 560  # pixels
_WIDE = 520  # of a chart that fills its page, where there is no page


@dataclass(frozen=True)
class Figure:
    """A picture with its words.

    Attributes
    ----------
    title, words
        What it is, and what is to be seen on it, in a sentence.
    spec
        How Vega-Lite draws it.
    numbers
        The same as a table, the head first, for those who see no picture; empty where the page
        has such a table anyway.
    """

    title: str
    words: str
    spec: dict[str, Any]
    numbers: tuple[tuple[str, ...], ...] = ()

    def save(self, path: str | Path) -> None:
        """Write it as .svg, .png or .html."""
        save_chart(self.spec, path)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"application/vnd.vegalite.v6+json": self.spec, "text/plain": self.words}


def chart(rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return a chart of rows that is as wide as its place."""
    return {"$schema": _SCHEMA, "data": {"values": rows}, "width": "container", **more}


def share_bars(
    names: list[str], shares: dict[str, list[float]], colours: list[str]
) -> dict[str, Any]:
    """Return bars of how common classes are, one for every kind of share, in this order."""
    kinds = list(shares)
    rows = [
        {"class": name, "share": round(shares[of][position], 6), "of": of}
        for position, name in enumerate(names)
        for of in kinds
    ]
    return chart(
        rows,
        height=max(28 * len(names), 60),
        mark={"type": "bar", "tooltip": True},
        encoding={
            "y": {
                "field": "class",
                "type": "nominal",
                "sort": names,
                "title": "class",
                "axis": {"labelLimit": 140},
            },
            "yOffset": {"field": "of", "sort": kinds},
            "x": {"field": "share", "type": "quantitative", "title": "share", "axis": PERCENT},
            "color": {
                "field": "of",
                "type": "nominal",
                "title": None,
                "sort": kinds,
                "scale": {"domain": kinds, "range": colours},
                "legend": {"orient": "top"},
            },
        },
    )


def check_chart(path: str | Path) -> str:
    """Return the ending of a chart's file, or say which there are."""
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        raise OptionError(f"{path}: a chart ends in {', '.join(_ENDINGS)}")
    return ending


def save_chart(spec: dict[str, Any], path: str | Path) -> None:
    """Write a chart; the ending tells whether as picture or as page."""
    import vl_convert

    ending = check_chart(path)
    still = {**spec, "width": _WIDE} if spec.get("width") == "container" else spec
    with atomic_file(path) as draft:
        if ending == ".png":
            draft.write_bytes(vl_convert.vegalite_to_png(still, scale=2))
        elif ending == ".svg":
            draft.write_text(vl_convert.vegalite_to_svg(still), encoding="utf-8")
        else:
            draft.write_text(_page(spec), encoding="utf-8")


def _page(spec: dict[str, Any]) -> str:
    """Return a page with nothing but the chart."""
    from jinja2 import Environment
    from markupsafe import Markup

    from .embedding import as_json, bundle, policy, resource

    draw, script = bundle(), resource("chart.js")
    return (
        Environment(autoescape=True)
        .from_string(resource("chart.html"))
        .render(
            policy=policy(draw, script),
            data=Markup(as_json(spec)),
            bundle=Markup(draw),
            script=Markup(script),
        )
    )


def pairs_chart(pairs: Pairs, clusters: Clusters) -> dict[str, Any]:
    """Return a heat map of annotators two by two, those who agree side by side.

    Beyond sixty annotators, those who met the most others are shown.
    """
    known = pairs.known
    met = np.bincount(
        np.concatenate([pairs.one[known], pairs.other[known]]), minlength=len(pairs.annotators)
    )
    most = set(np.argsort(-met, kind="stable")[:_MOST].tolist())
    shown = [who for who in clusters.order.tolist() if who in most]
    names = _different([str(pairs.annotators[who]) for who in shown])
    ends = [0, 0.5, 1] if pairs.measure == "percent" else [-1, 0, 1]
    size = max(min(_ROOM // max(len(shown), 1), 40), 9)
    letters = min(11, max(size - 1, 7))

    def axis(field: str) -> dict[str, Any]:
        look = {"labelLimit": 120, "labelOverlap": False, "ticks": False, "domain": False}
        return {
            "field": field,
            "type": "nominal",
            "sort": names,
            "scale": {"domain": names},
            "title": "annotator",
            "axis": {**look, "grid": False, "labelFontSize": letters},
        }

    return {
        "$schema": _SCHEMA,
        "title": {
            "text": f"{_TITLES[pairs.measure]} of annotators, two by two",
            "subtitle": _told(pairs, clusters, len(shown)),
            "anchor": "start",
        },
        "data": {"values": _cells(pairs, dict(zip(shown, names, strict=True)))},
        "width": {"step": size},
        "height": {"step": size},
        "mark": {"type": "rect"},
        "encoding": {
            "x": axis("one"),
            "y": axis("other"),
            "color": {
                "field": "value",
                "type": "quantitative",
                "scale": {"domain": ends, "range": _COLOURS},
                "legend": {"title": _TITLES[pairs.measure]},
            },
            "tooltip": [
                {"field": "one", "type": "nominal"},
                {"field": "other", "type": "nominal"},
                {"field": "value", "type": "quantitative", "format": ".3f"},
                {"field": "items", "type": "quantitative", "title": "common items"},
            ],
        },
        "config": {"view": {"fill": "#dcdcdc", "stroke": None}},
    }


_TITLES = {"cohen": "Cohen's kappa", "scott": "Scott's pi", "percent": "Agreement"}
_COLOURS = ["#b2182b", "#f7f7f7", "#2166ac"]


def _cells(pairs: Pairs, name: dict[int, str]) -> list[dict[str, Any]]:
    """Return two cells for every pair with a value, one on each side of the diagonal."""
    kept = pairs.known & np.isin(pairs.one, list(name)) & np.isin(pairs.other, list(name))
    columns = pairs.one[kept], pairs.other[kept], pairs.value[kept].round(4), pairs.overlap[kept]
    return [
        {"one": name[left], "other": name[right], "value": value, "items": round(items)}
        for one, other, value, items in zip(*(part.tolist() for part in columns), strict=True)
        for left, right in ((one, other), (other, one))
    ]


def _told(pairs: Pairs, clusters: Clusters, shown: int) -> str:
    groups = f"{clusters.n_clusters} groups" if clusters.n_clusters > 1 else "no groups"
    total = len(pairs.annotators)
    some = "" if shown == total else f"{shown} of {total} annotators; "
    return f"{some}{groups}; grey: fewer than {pairs.min_overlap} common items"


def _different(names: list[str]) -> list[str]:
    """Return names short enough for an axis, all of them still different."""
    short = [name if len(name) <= 24 else f"{name[:23]}…" for name in names]
    return names if len(set(short)) < len(short) else short
