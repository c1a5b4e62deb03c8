"""Pictures of recovered distributions: beside those of people, and how far they can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._relation import Floats
from ..reporting.charts import BLUE, GREY, ORANGE, PERCENT, Figure
from .measures import entropy, reliability, shares_of

__all__ = ["reliability_figure", "splits_figure"]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"  # a name; nothing is fetched
_PEOPLE, _RECOVERED = "people", "recovered"
_COLOURS = (BLUE, ORANGE, "#3a9d6e", "#8e5bb5", "#b5504f", GREY)


def splits_figure(
    p: Floats,
    votes: Floats,
    *,
    items: Sequence[str],
    classes: Sequence[str],
    most: int = 12,
    columns: int = 4,
) -> Figure:
    """Return people and recovered splits side by side, from items they agree on to torn ones.

    Parameters
    ----------
    p, votes
        Recovered distributions, and how many people said what: (item, class).
    items, classes
        Names; of an item perhaps its text.
    most
        How many items to show, evenly from those of least to those of most disagreement.
    columns
        How many in a row.
    """
    q = shares_of(votes)
    order = np.argsort(entropy(q) + 1e-6 * entropy(p), kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(most, len(order))).astype(int))]
    titles = [f"{position + 1}. {_short(str(items[item]))}" for position, item in enumerate(chosen)]
    rows = [
        {"item": title, "class": str(name), "share": round(float(of[item, k]), 6), "of": kind}
        for title, item in zip(titles, chosen, strict=True)
        for kind, of in ((_PEOPLE, q), (_RECOVERED, p))
        for k, name in enumerate(classes)
    ]
    spec = {
        "$schema": _SCHEMA,
        "data": {"values": rows},
        "columns": columns,
        "facet": {
            "field": "item",
            "type": "nominal",
            "sort": titles,
            "title": None,
            "header": {"labelLimit": 150, "labelAnchor": "start", "labelFontSize": 10},
        },
        "spec": {
            "width": 110,
            "height": max(22 * len(classes), 44),
            "mark": {"type": "bar", "tooltip": True},
            "encoding": {
                "y": {"field": "class", "type": "nominal", "sort": list(classes), "title": None,
                      "axis": {"labelLimit": 80}},
                "yOffset": {"field": "of", "sort": [_PEOPLE, _RECOVERED]},
                "x": {"field": "share", "type": "quantitative", "title": None,
                      "scale": {"domain": [0, 1]}, "axis": {"format": ".0%", "tickCount": 3}},
                "color": {"field": "of", "type": "nominal", "title": None,
                          "sort": [_PEOPLE, _RECOVERED],
                          "scale": {"domain": [_PEOPLE, _RECOVERED], "range": [BLUE, ORANGE]},
                          "legend": {"orient": "top"}},
            },
        },
        "config": {"background": "white"},
    }  # fmt: skip
    per_item = float(np.asarray(votes).sum(axis=1).mean())
    words = (
        f"Shares of the people ({per_item:.1f} an item) and recovered ones, of {len(chosen)} items "
        "from those on which people agree to those on which they are torn."
    )
    return Figure("How people split, and what was recovered", words, spec)


def reliability_figure(predicted: Mapping[str, Floats], votes: Floats, bins: int = 10) -> Figure:
    """Return what people say where a probability was predicted, a line for every method."""
    q, rows = shares_of(votes), []
    for name, p in predicted.items():
        found = reliability(p, q, bins)
        some = found.size > 0
        columns = (found.predicted[some], found.seen[some], found.size[some])
        rows += [
            {"method": name, "predicted": float(x), "seen": float(y), "pairs": int(size)}
            for x, y, size in zip(*columns, strict=True)
        ]
    names = list(predicted)
    axis: dict[str, Any] = {
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": PERCENT,
    }
    x = {**axis, "field": "predicted", "title": "recovered share of a class"}
    y = {**axis, "field": "seen", "title": "share of the people"}
    colour: dict[str, Any] = {
        "field": "method",
        "type": "nominal",
        "sort": names,
        "title": None,
        "scale": {
            "domain": names,
            "range": [_COLOURS[i % len(_COLOURS)] for i in range(len(names))],
        },
        "legend": {"orient": "top", "columns": 3, "labelLimit": 220} if len(names) > 1 else None,
    }
    spec = {
        "$schema": _SCHEMA,
        "width": 320,
        "height": 320,
        "layer": [
            {
                "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
                "mark": {"type": "line", "color": GREY, "strokeDash": [4, 4]},
                "encoding": {"x": {**axis, "field": "x"}, "y": {**axis, "field": "y"}},
            },
            {
                "data": {"values": rows},
                "mark": {"type": "line", "strokeWidth": 1.5},
                "encoding": {"x": x, "y": y, "color": colour},
            },
            {
                "data": {"values": rows},
                "mark": {"type": "circle", "opacity": 1, "tooltip": True},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": colour,
                    "size": {
                        "field": "pairs",
                        "type": "quantitative",
                        "scale": {"range": [12, 260]},
                        "legend": {"title": "items × classes", "tickCount": 3},
                    },
                },
            },
        ],
        "config": {"background": "white"},
    }
    told = ", ".join(f"{name} {reliability(p, q, bins).error:.3f}" for name, p in predicted.items())
    words = f"Mean share of the people in bins of the recovered share; mean distance: {told}."
    return Figure("Recovered shares against people", words, spec)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 28 else f"{text[:27]}…"
