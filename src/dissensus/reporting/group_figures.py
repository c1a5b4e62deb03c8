"""Pictures of two rounds: classes side by side, and everybody before and after."""

from __future__ import annotations

import numpy as np

from .charts import BLUE, GREY, ORANGE, PERCENT, Figure, chart, share_bars
from .group_comparison import Rounds
from .sentences import percent

__all__ = ["change_figure", "classes_figure"]

_MOST_CLASSES = 30
_MOST_POINTS = 1000
_COLOURS = {"better": "#1d6996", "worse": "#d1495b", "no clear change": GREY}


def classes_figure(rounds: Rounds) -> Figure:
    """Return how common every class is on both sides."""
    sides = rounds.first, rounds.second
    classes = rounds.first.annotations.classes
    shares = []
    for side in sides:
        label = side.result.label[side.result.label >= 0]
        shares.append(np.bincount(label, minlength=len(classes)) / max(len(label), 1))
    order = np.argsort(-(shares[0] + shares[1]), kind="stable")[:_MOST_CLASSES].tolist()
    names = [classes[k] for k in order]
    by_side = {side.name: share[order].tolist() for side, share in zip(sides, shares, strict=True)}
    spec = share_bars(names, by_side, [ORANGE, BLUE])
    k = int(np.abs(shares[1] - shares[0]).argmax())
    words = (
        f"The share of {classes[k]} differs most: {percent(float(shares[0][k]))} and "
        f"{percent(float(shares[1][k]))} of the items."
    )
    numbers = (
        ("class", *(side.name for side in sides)),
        *((classes[k], *(percent(float(share[k])) for share in shares)) for k in order),
    )
    return Figure("Labels inferred", words, spec, numbers)


def change_figure(rounds: Rounds) -> Figure:
    """Return the share of right labels of everybody, first against second."""
    rows = [
        {
            "who": one.name,
            "first": one.right[0],
            "second": one.right[1],
            "change": one.word,
        }
        for one in rounds.annotators[:_MOST_POINTS]
    ]
    whole = {"type": "quantitative", "axis": PERCENT, "scale": {"domain": [0, 1]}}
    x = {"field": "first", "title": f"right in {rounds.first.name}", **whole}
    y = {"field": "second", "title": f"right in {rounds.second.name}", **whole}
    diagonal = {"values": [{"first": 0, "second": 0}, {"first": 1, "second": 1}]}
    spec = chart(
        rows,
        height=300,
        layer=[
            {
                "data": diagonal,
                "mark": {"type": "line", "strokeDash": [4, 4], "color": GREY},
                "encoding": {"x": x, "y": y},
            },
            {
                "mark": {"type": "circle", "size": 60, "opacity": 0.95},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": {
                        "field": "change",
                        "type": "nominal",
                        "title": None,
                        "scale": {"domain": [*_COLOURS], "range": [*_COLOURS.values()]},
                        "legend": {"orient": "top"},
                    },
                    "tooltip": [
                        {"field": "who", "title": "annotator"},
                        {"field": "first", "format": ".1%"},
                        {"field": "second", "format": ".1%"},
                        {"field": "change"},
                    ],
                },
            },
        ],
    )
    return Figure("Everybody, before and after", "Above the dashed line: better.", spec)
