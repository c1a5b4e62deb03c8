"""The section of a report on predicting individual annotators.

It shows the output of `dissensus tendency evaluate --json`; nothing is fitted here.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..pages.charts import BLUE, GREY, PERCENT, Figure, chart, colour, number
from ..pages.sections import Section, Table
from ..pages.wording import formatted

_MARGINALS, _CONSENSUS = "own-majority", "consensus"
_MAX_ANNOTATORS = 200  # in the chart
_MAX_NAMED = 30  # annotators up to which the chart names them
_LOWEST = 10  # annotators in the table
_CLEAR = 0.01  # of log loss, below which a difference is not mentioned
_COLUMNS = {
    "log loss": "log_loss",
    "accuracy": "accuracy",
    "worst tenth": "accuracy_worst_decile",
    "calibration error": "ece",
    "DIC": "dic",
    "DIC rms": "dic_rms",
}


@dataclass(frozen=True)
class Predictions:
    """Held-out scores of models of annotators, by name; the last model is the one reported."""

    scores: dict[str, dict[str, Any]]

    @property
    def method(self) -> str:
        """The model that is reported."""
        return list(self.scores)[-1]

    def summary(self, method: str, score: str) -> float:
        """Return a score of a model, NaN where there is none."""
        value = self.scores.get(method, {}).get("summary", {}).get(score)
        return math.nan if value is None else float(value)

    @property
    def sentences(self) -> list[str]:
        """The scores in a few sentences."""
        loss = {name: self.summary(name, "log_loss") for name in self.scores}
        own = loss[self.method]
        sentences = [
            f"{self.method} predicted the labels of each annotator on held-out items: "
            f"{self.summary(self.method, 'accuracy'):.0%} right, mean over annotators, with a log "
            f"loss of {own:.3f}."
        ]
        if _CONSENSUS in loss:
            sentences.append(
                "Annotators have opinions of their own: a model of each predicts them better than "
                f"one opinion for all (log loss {loss[_CONSENSUS]:.3f})."
                if loss[_CONSENSUS] - own > _CLEAR
                else "One opinion for all predicts annotators as well as a model of each: there is "
                "little that is personal in these labels, or too few of them to see it."
            )
        if loss.get(_MARGINALS, math.inf) - own < _CLEAR:
            sentences.append(
                "Label marginals alone, whatever the item, do as well: the inputs carry little "
                "information about the labels."
            )
        floor, rms = (self.summary(self.method, name) for name in ("dic_rms_floor", "dic_rms"))
        if not math.isnan(floor):
            sentences.append(
                f"Kappa between predicted annotators differs from that between the true ones by "
                f"{rms:.2f}; noise alone would give {floor:.2f}."
            )
        return sentences

    def section(self) -> Section:
        """Return the section of the page."""
        rows = [
            (name, *(formatted(self.summary(name, key), ".3f") for key in _COLUMNS.values()))
            for name in self.scores
        ]
        table = Table("Models of annotators on held-out items", ["model", *_COLUMNS], rows)
        note = (
            "DIC is the distance between the pairwise agreement of annotators and that of their "
            "predictions. Do not select models by it: predictions that err at random come nearer."
        )
        title = "Individual annotators"
        panels: list[list[Table | str]] = [[table, "predictions"]]
        return Section("tendency", title, self.sentences, [note], panels=panels)


def read_predictions(path: str | Path) -> Predictions:
    """Read the output of `dissensus tendency evaluate --json`."""
    try:
        scores = json.loads(Path(path).read_text(encoding="utf-8"))
        for model_scores in scores.values():
            float(model_scores["summary"]["log_loss"])
            dict(model_scores["annotators"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        sentence = f"{path}: not what `dissensus tendency evaluate {{}}` prints ({problem})"
        raise DataError(remedy=sentence, json=True) from None
    if not scores:
        raise DataError(f"{path}: scores of no model")
    return Predictions(scores)


def predictions_figure(predictions: Predictions) -> Figure | None:
    """Return how often every annotator was predicted, compared with their label marginals."""
    method, own = predictions.method, predictions.scores[predictions.method]
    marginals = predictions.scores.get(_MARGINALS, {}).get("annotators", {})
    accuracy = {
        name: annotator_scores["accuracy"]
        for name, annotator_scores in own["annotators"].items()
        if annotator_scores["count"] >= own.get("min_labels", 10)
        and annotator_scores["accuracy"] is not None
    }
    if not accuracy:
        return None
    order = sorted(accuracy, key=accuracy.__getitem__)
    base = {name: (marginals.get(name) or {}).get("accuracy") for name in order}
    count = {name: own["annotators"][name]["count"] for name in order}
    rows = [
        {"annotator": name, "of": of, "right": round(value, 4), "labels": count[name]}
        for name in order[:_MAX_ANNOTATORS]
        for of, value in ((method, accuracy[name]), ("label marginals", base[name]))
        if value is not None
    ]
    has_names = len(order) <= _MAX_NAMED
    y = {"field": "annotator", "type": "nominal", "sort": order[:_MAX_ANNOTATORS]}
    spec = chart(
        rows,
        height={"step": 16} if has_names else 300,
        mark={"type": "point", "filled": True, "size": 45, "tooltip": {"content": "data"}},
        encoding={
            "y": {**y, "axis": {"labels": has_names, "labelLimit": 140, "ticks": False}},
            "x": number("right", "predicted right", axis=PERCENT, scale={"zero": False}),
            "color": colour("of", {"label marginals": GREY, method: BLUE}),
        },
    )
    first, last = order[0], order[-1]
    words = f"From {accuracy[first]:.0%} ({first}) to {accuracy[last]:.0%} ({last})."
    gains = {name: accuracy[name] - base[name] for name in order if base[name] is not None}
    if gains and max(gains.values()) > 0:
        words += (
            f" The gain over label marginals is largest for {max(gains, key=gains.__getitem__)}."
        )
    numbers = [
        (
            name,
            f"{accuracy[name]:.0%}",
            "–" if base[name] is None else f"{base[name]:.0%}",
            str(count[name]),
        )
        for name in order[:_LOWEST]
    ]
    head = ("lowest accuracy", "right", "by label marginals", "labels")
    return Figure("How well each annotator is predicted", words, spec, (head, *numbers))
