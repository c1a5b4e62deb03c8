"""A picture of the annotators: how much everybody did, and how right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .charts import PERCENT, Figure, chart

if TYPE_CHECKING:
    from ..identification import AnnotatorScores

__all__ = ["annotators_figure"]

# Verdict → colour, the worst first; they differ in lightness too.
_COLOURS = {
    "adversarial": "#8b1a1a",
    "spammer": "#d1495b",
    "careless": "#edae49",
    "too few labels to say": "#9aa4b2",
    "fine": "#5b9bd5",
    "expert": "#1d6996",
}
_MOST = 2000  # points
_WIDE = 20  # times the least from which on an axis of counts has powers


def annotators_figure(scores: AnnotatorScores) -> Figure | None:
    """Return labels given against the share that is right; beyond two thousand, the worst."""
    worst = scores.worst
    known = worst[~np.isnan(scores.accuracy.value[worst])]
    if not len(known):
        return None
    shown = known[:_MOST]
    verdict, labels = scores.verdict, scores.habits.labels
    rows = [
        {
            "annotator": scores.annotations.annotators[who],
            "labels": int(labels[who]),
            "right": round(float(scores.accuracy.value[who]), 4),
            "low": round(float(scores.accuracy.low[who]), 4),
            "high": round(float(scores.accuracy.high[who]), 4),
            "verdict": verdict[who],
        }
        for who in shown.tolist()
    ]
    least, most = int(labels[shown].min()), int(labels[shown].max())
    x = {
        "field": "labels",
        "type": "quantitative",
        "title": "labels given",
        "scale": {"type": "log", "domain": [least / 1.1, most * 1.1], "nice": False}
        if most > _WIDE * least
        else {"domain": [0, most * 1.05], "nice": False},
        "axis": {"tickCount": 6, "format": "~s" if most >= 10_000 else ",.0f"},
    }
    y = {
        "type": "quantitative",
        "title": "right, by what the others say",
        "axis": PERCENT,
        "scale": {"domain": [0, 1]},
    }
    present = [word for word in _COLOURS if word in scores.verdict_counts]
    colour = {
        "field": "verdict",
        "type": "nominal",
        "title": None,
        "scale": {"domain": present, "range": [_COLOURS[word] for word in present]},
        "legend": {"orient": "top", "symbolOpacity": 1},
    }
    spec = chart(
        rows,
        height=280,
        encoding={"color": colour},
        layer=[
            {
                "mark": {"type": "rule", "opacity": 0.35},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "circle", "size": 60, "opacity": 0.95, "cursor": "pointer"},
                "encoding": {
                    "x": x,
                    "y": {**y, "field": "right"},
                    "tooltip": [
                        {"field": "annotator"},
                        {"field": "verdict"},
                        {"field": "labels"},
                        {"field": "right", "format": ".1%"},
                        {"field": "low", "format": ".1%"},
                        {"field": "high", "format": ".1%"},
                    ],
                },
            },
        ],
    )
    told = ", ".join(f"{count} {word}" for word, count in scores.verdict_counts.items())
    some = "" if len(shown) == len(known) else f" The {len(shown)} worst are shown."
    words = f"Verdicts: {told}. Lines are 95% intervals.{some}"
    return Figure("Annotators: how much, and how right", words, spec)
