"""The training curve as a chart: loss and score by epoch, with the chosen epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .runs import Row

_COLOUR = "#2166ac"


def curve_png(rows: Sequence[Row], best: int, words: str) -> bytes:
    """Return the curve of a training as PNG."""
    import vl_convert

    panels = [_panel(rows, "loss", "training loss", best)]
    if rows and rows[0].score is not None:
        panels.append(_panel(rows, "score", words.split(" of ")[0].split(" on ")[0], best))
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "title": {"text": "Training", "subtitle": f"chosen by {words}", "anchor": "start"},
        "hconcat": panels,
    }
    return vl_convert.vegalite_to_png(spec, scale=2)


def _panel(rows: Sequence[Row], field: str, title: str, best: int) -> dict[str, Any]:
    values = [{"epoch": row.epoch, field: getattr(row, field)} for row in rows]
    line = {
        "data": {"values": values},
        "mark": {"type": "line", "color": _COLOUR, "point": len(rows) < 3},
        "encoding": {
            "x": {"field": "epoch", "type": "quantitative", "axis": {"tickMinStep": 1}},
            "y": {"field": field, "type": "quantitative", "title": title, "scale": {"zero": False}},
        },
    }
    chosen = {
        "data": {"values": [{"epoch": best}]},
        "mark": {"type": "rule", "strokeDash": [6, 4]},
        "encoding": {"x": {"field": "epoch", "type": "quantitative"}},
    }
    return {"width": 320, "height": 240, "layer": [line, chosen]}
