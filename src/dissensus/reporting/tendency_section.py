"""The part of a report on how well single annotators can be foreseen.

It stands on what `dissensus tendency evaluate --json` has printed: nothing is learned here.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError
from .charts import BLUE, GREY, PERCENT, Figure, chart

__all__ = ["Foresight", "foresight_figure", "read_foresight"]

_HABITS, _CONSENSUS = "own-majority", "consensus"
_MOST = 200  # annotators in the picture
_NAMED = 10  # annotators in its table
_CLEAR = 0.01  # of log loss, below which a difference is not told


@dataclass(frozen=True)
class Foresight:
    """Scores of models of annotators, by name; the last one is the one that is told of."""

    scores: dict[str, dict[str, Any]]

    @property
    def method(self) -> str:
        """The model that is told of."""
        return list(self.scores)[-1]

    def summary(self, method: str, score: str) -> float:
        """Return a score of a model, NaN where there is none."""
        value = self.scores.get(method, {}).get("summary", {}).get(score)
        return math.nan if value is None else float(value)

    @property
    def sentences(self) -> list[str]:
        """What the scores say, in a few sentences."""
        loss = {name: self.summary(name, "log_loss") for name in self.scores}
        mine = loss[self.method]
        known = {name: loss[name] for name in (_HABITS, _CONSENSUS) if name in loss}
        told = [
            f"What each annotator says of items that were held out was foreseen by {self.method}: "
            f"{self.summary(self.method, 'accuracy'):.0%} right, mean over annotators, and a log "
            f"loss of {mine:.3f}."
        ]
        if _CONSENSUS in known:
            gain = known[_CONSENSUS] - mine
            told.append(
                "Annotators have opinions of their own: a model of each foresees them better than "
                f"one opinion for all (log loss {known[_CONSENSUS]:.3f})."
                if gain > _CLEAR
                else "One opinion for all foresees annotators as well as a model of each: there is "
                "little that is personal in these labels, or too few of them to see it."
            )
        if known.get(_HABITS, math.inf) - mine < _CLEAR:
            told.append(
                "Habits alone, whatever the item, do as well: the inputs tell little about the "
                "labels."
            )
        floor, apart = (self.summary(self.method, name) for name in ("dic_rms_floor", "dic_rms"))
        if floor == floor:
            told.append(
                f"Predicted annotators agree with each other by {apart:.2f} of kappa more or less "
                f"than the true ones; noise alone would give {floor:.2f}."
            )
        return told

    def rows(self) -> list[tuple[str, ...]]:
        """Return a table of the models."""
        return [
            (name, *(_shown(self.summary(name, key)) for key in _HEADS.values()))
            for name in self.scores
        ]

    @property
    def heads(self) -> list[str]:
        """The columns of that table."""
        return ["model", *_HEADS]


_HEADS = {
    "log loss": "log_loss",
    "accuracy": "accuracy",
    "worst tenth": "accuracy_worst_decile",
    "calibration error": "ece",
    "DIC": "dic",
    "DIC rms": "dic_rms",
}


def read_foresight(path: str | Path) -> Foresight:
    """Read what `dissensus tendency evaluate --json` has printed."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        for scores in found.values():
            float(scores["summary"]["log_loss"])
            dict(scores["annotators"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise DataError(
            f"{path}: not what `dissensus tendency evaluate --json` prints ({problem})"
        ) from None
    if not found:
        raise DataError(f"{path}: scores of no model")
    return Foresight(found)


def foresight_figure(foresight: Foresight) -> Figure | None:
    """Return how often every annotator was foreseen, beside their habits."""
    mine = foresight.scores[foresight.method]
    least = mine.get("min_labels", 10)
    habits = foresight.scores.get(_HABITS, {}).get("annotators", {})
    known = {
        name: one["accuracy"]
        for name, one in mine["annotators"].items()
        if one["count"] >= least and one["accuracy"] is not None
    }
    if not known:
        return None
    order = sorted(known, key=known.__getitem__)
    base = {name: (habits.get(name) or {}).get("accuracy") for name in order}
    rows = [
        {
            "annotator": name,
            "of": of,
            "right": round(value, 4),
            "labels": mine["annotators"][name]["count"],
        }
        for name in order[:_MOST]
        for of, value in ((foresight.method, known[name]), ("habits alone", base[name]))
        if value is not None
    ]
    kinds = ["habits alone", foresight.method]
    spec = chart(
        rows,
        height={"step": 16} if len(order) <= 30 else 300,
        mark={"type": "point", "filled": True, "size": 45, "tooltip": {"content": "data"}},
        encoding={
            "y": {
                "field": "annotator",
                "type": "nominal",
                "sort": order[:_MOST],
                "axis": {"labels": len(order) <= 30, "labelLimit": 140, "ticks": False},
            },
            "x": {"field": "right", "type": "quantitative", "title": "foreseen", "axis": PERCENT}
            | {"scale": {"zero": False}},
            "color": {
                "field": "of",
                "type": "nominal",
                "title": None,
                "scale": {"domain": kinds, "range": [GREY, BLUE]},
                "legend": {"orient": "top"},
            },
        },
    )
    gain = sorted(
        ((known[name] - base[name], name) for name in order if base[name] is not None), reverse=True
    )
    words = f"From {known[order[0]]:.0%} ({order[0]}) to {known[order[-1]]:.0%} ({order[-1]})."
    if gain and gain[0][0] > 0:
        words += f" What a model knows beyond habits shows most for {gain[0][1]}."
    numbers = (
        ("least foreseen", "right", "by habits alone", "labels"),
        *(
            (name, f"{known[name]:.0%}", _share(base[name]), str(mine["annotators"][name]["count"]))
            for name in order[:_NAMED]
        ),
    )
    return Figure("How often each annotator was foreseen", words, spec, numbers)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _shown(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
