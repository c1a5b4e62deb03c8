"""Figures of two scores against each other: of annotators, and of items.

Scores that rank alike lie along a line; who or what is far from it is good by one score and bad by
the other. Spearman's rank correlation sums it up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.names import Names, as_names
from ..base.plain import as_rows
from ..base.arrays import Array, Floats
from .correlations import within_ranks
from .scores import Scored, find_score
from ..pages import charts
from ..pages.charts import BLUE, RED, VERDICT_COLOURS, Figure

if TYPE_CHECKING:
    from . import AnnotatorScores
    from ..deep.learning.hardness import Hardness

_MOST = 2000  # points, above which they are counted in cells
_FEW = 200  # points that are drawn large
_CELLS = 40  # along each axis
_AXES = {
    "trace": "trace of the confusion matrix",
    "spam_score": "spam score (0 a spammer, 1 a hammer)",
    "ability": "GLAD's ability",
    "entropy": "entropy of the labels (nats)",
    "waum": "WAUM (low: hard)",
    "waum_perworker": "WAUM, a network for each annotator (low: hard)",
    "aum": "AUM (low: hard)",
    "aumc": "AUM of the majority label (low: hard)",
}
PRUNED = {"too hard": RED, "kept": BLUE}


def annotator_pair(scores: AnnotatorScores) -> Figure | None:
    """Return annotators by trace and spam score, coloured by verdict."""
    if scores.peers is None:
        return None
    names = scores.annotations.annotators
    pair = [
        Scored(find_score(name), names, values)
        for name, values in (("trace", scores.trace), ("spam_score", scores.spam_score))
    ]
    return score_pair(*pair, groups=scores.verdict, palette=VERDICT_COLOURS)


def item_pair(hard: Hardness, entropy: Scored) -> Figure | None:
    """Return items by hardness for a network and by the entropy of their labels."""
    score = Scored(find_score(hard.measure), hard.annotations.items, hard.score)
    groups = as_names(["kept", "too hard"])[hard.pruned.astype(int)]
    return score_pair(score, entropy, groups=groups, palette=PRUNED)


def score_pair(
    one: Scored,
    other: Scored,
    *,
    groups: Names | None = None,
    palette: Mapping[str, str] | None = None,
) -> Figure | None:
    """Return two scores of the same annotators or items; nothing if fewer than two have both."""
    x, y = one.values.astype(float), other.values.astype(float)
    known = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    if len(known) < 2:
        return None
    of, names = one.score.of, (one.score.name, other.score.name)
    x, y = x[known], y[known]
    words = _correlation(x, y)
    if len(known) < len(one.values):
        words += f" {len(one.values) - len(known)} {of}s without both scores are not shown."
    axes = [
        charts.number(field, _AXES.get(name, _plain(name)), scale={"zero": False})
        for field, name in zip("xy", names, strict=True)
    ]
    if len(known) > _MOST:
        spec = _cells(x, y, axes, of)
    else:
        columns: dict[str, Array] = {of: one.names[known], "x": x.round(4), "y": y.round(4)}
        encoding: dict[str, Any] = {"x": axes[0], "y": axes[1]}
        shown = [{"field": of}, *({**a, "format": ".3f"} for a in axes)]
        if len(np.unique(y)) < len(y) / 10:
            columns["spread"] = _spread(y).round(4)
            encoding["y"] = {**axes[1], "field": "spread"}
            words += " Equal values are spread a little."
        if groups is not None and palette:
            columns["group"] = groups[known]
            present = set(columns["group"].tolist())
            colours = {word: tone for word, tone in palette.items() if word in present}
            encoding["color"] = charts.colour("group", colours, symbolOpacity=1, columns=4)
            shown.append({"field": "group"})
        encoding["tooltip"] = [{k: v for k, v in a.items() if k != "scale"} for a in shown]
        few = len(known) <= _FEW
        mark: dict[str, Any] = {"type": "circle", "color": BLUE}
        mark |= {"size": 50, "opacity": 0.7} if few else {"size": 25, "opacity": 0.45}
        spec = charts.chart(as_rows(columns), height=280, mark=mark, encoding=encoding)
    title = f"{of.capitalize()}s by {_plain(names[0])} and {_plain(names[1])}"
    return Figure(title, words, spec)


def _plain(name: str) -> str:
    """Return the name of a score in words."""
    word, *rest = name.split("_")
    return " ".join([word.upper() if word in ("waum", "aum", "aumc") else word, *rest])


def _spread(values: Floats) -> Floats:
    """Return values moved at random by up to a fiftieth of their range."""
    return values + np.random.default_rng(0).uniform(-1, 1, len(values)) * np.ptp(values) / 50


def _correlation(x: Floats, y: Floats) -> str:
    if min(np.ptp(x), np.ptp(y)) == 0:
        return "One of the scores is the same for all."
    together = np.zeros(len(x), dtype=np.int64)
    rho = np.corrcoef(within_ranks(together, x), within_ranks(together, y))[0, 1]
    return f"Spearman's rank correlation of the two scores is {rho:.2f}."


def _cells(x: Floats, y: Floats, axes: list[dict[str, Any]], of: str) -> dict[str, Any]:
    """Return a chart of counts in cells of a grid."""
    counts, *edges = np.histogram2d(x, y, bins=_CELLS)
    row, column = np.nonzero(counts)
    columns = {
        "x": edges[0][row],
        "x2": edges[0][row + 1],
        "y": edges[1][column],
        "y2": edges[1][column + 1],
        "count": counts[row, column].astype(int),
    }
    tone = charts.number("count", f"{of}s", scale={"type": "log", "scheme": "blues"})
    encoding: dict[str, Any] = {
        "x": {**axes[0], "bin": {"binned": True}},
        "x2": {"field": "x2"},
        "y": {**axes[1], "bin": {"binned": True}},
        "y2": {"field": "y2"},
        "color": tone,
        "tooltip": [{"field": "count", "title": f"{of}s"}],
    }
    return charts.chart(as_rows(columns), height=280, mark={"type": "rect"}, encoding=encoding)
