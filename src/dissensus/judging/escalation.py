"""Which items people should check after the judges.

The judges' prediction s of a person's label, learned from a random seed of human labels, is least
sure where max_c s_i(c) is lowest, so people are asked about these items first, and the pool labels
them. What the answer of one person about item i adds is taken as

    Σ_c s_i(c) max_c' ([c = c'] + s_i(c')) / 2 - max_c s_i(c)

as if the judges counted for one person. They often count for more, but their predictions are
learned again from the new labels, so that an answer also helps other items. A tenth of what people
label is chosen at random instead, and only these labels are a random sample for estimates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..base.arrays import Floats, Integers
from ..base.names import Names
from ..base.storage import as_plain
from ..base.tables import Table
from ..pages import charts
from ..pages.charts import BLUE, GREY, ORANGE, Figure
from .mixed import Mixed
from .pool import Pooled
from .question import Question, too_few, whole_percent

_MIN_SEED = 50  # items that people labelled, chosen at random
_SHORTCUT = 0.8  # beyond this share of the items there is no short cut
_ENOUGH = 0.9  # of the gain of asking about everything
_AUDIT = 0.1
_MAX_POINTS = 200  # of the chart


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Escalation(Question):
    """The items that people should check, the most doubtful first.

    Attributes
    ----------
    items
        Names of the items without human labels, in order.
    doubt
        1 - max_c s_i(c).
    gain
        What a person's answer adds.
    gained
        The share of the gain of asking about all, with the first k of them asked, k = 0 … all:
        (item + 1).
    enough
        How many of them have 90 % of the gain of all.
    chosen, audit
        Positions of items within the budget, and which of them were chosen at random.
    n_seed
        Items that people labelled.
    path
        The file that lists the chosen items; empty if none was written.
    """

    name: ClassVar[str] = "check"
    title: ClassVar[str] = "Which items should people check?"

    items: Names
    doubt: Floats
    gain: Floats
    gained: Floats
    enough: int
    chosen: Integers
    audit: npt.NDArray[np.bool_]
    n_seed: int
    path: str = ""

    @property
    def shortcut(self) -> bool:
        """Whether far fewer items than all do."""
        return self.enough <= _SHORTCUT * len(self.items)

    @property
    def part(self) -> float:
        """How much of the gain of asking about everything the chosen items have."""
        total = float(self.gain.sum())
        return float(self.gain[self.chosen].sum()) / total if total > 0 else 1.0

    @property
    def tables(self) -> Mapping[str, Table]:
        """The items to check; audit marks those that were chosen at random."""
        columns = {
            "item": self.items[self.chosen],
            "doubt": self.doubt[self.chosen],
            "audit": self.audit,
        }
        return {self.name: columns}

    @property
    def sentences(self) -> tuple[str, ...]:
        """How many items people should check, and how much that does."""
        total, n_chosen = len(self.items), len(self.chosen)
        items = f"items in {self.path}" if self.path else "most doubtful items"
        request = f"Ask people about the {n_chosen} {items}: that should do"
        if not total:
            return ()
        if self.n_seed < _MIN_SEED:
            return (f"{self.title} {too_few(self.n_seed, _MIN_SEED)}",)
        if not self.shortcut:
            return (
                f"There is no short cut: people would have to label about {self.enough} of the "
                f"{total} items without human labels, because the models are far below a person.",
            )
        if not self.enough:
            return (
                f"No answer of one person would overrule the models on any of the {total} items "
                "without human labels.",
            )
        if n_chosen >= self.enough:
            return (f"{request} as much as all {total}.",)
        part = whole_percent(self.part)
        return (f"{request} {part} as much as all {total}; {self.enough} items would do.",)

    @property
    def figures(self) -> Mapping[str, Figure]:
        """What it adds when people check the most doubtful items first."""
        return {"escalation": _figure(self)} if len(self.items) > 1 else {}

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers of items, and how much of the gain the chosen ones have."""
        return {
            "n_items": len(self.items),
            "enough": self.enough,
            "chosen": len(self.chosen),
            "part": as_plain(self.part),
        }


def escalate(
    data: Mixed, pooled: Pooled, *, budget: int | None = None, seed: int = 0
) -> Escalation:
    """Return which items people should check, the most doubtful first.

    Without a budget, those that do nearly as much as all.
    """
    free = np.flatnonzero(~data.known & (data.n_judges > 0))
    s = pooled.predicted[free]
    top = s.max(axis=1)
    gain = np.maximum(_after_answer(s) - top, 0)
    order = np.lexsort((free, top.round(12)))
    free, top, gain = free[order], top[order], gain[order]
    cumulative, total = np.concatenate([[0.0], np.cumsum(gain)]), float(gain.sum())
    gained = cumulative / total if total > 0 else np.ones(len(cumulative))
    enough = int(np.searchsorted(gained, _ENOUGH))
    count = min(enough if budget is None else budget, len(free))
    positions, audit = _with_audit(len(free), count, seed)
    return Escalation(
        items=data.people.items[free],
        doubt=1 - top,
        gain=gain,
        gained=gained,
        enough=enough,
        chosen=positions,
        audit=audit,
        n_seed=int(data.known.sum()),
    )


def _after_answer(s: Floats) -> Floats:
    """Return the expected probability of the label after one answer: (item)."""
    out = np.zeros(len(s))
    for label in range(s.shape[1]):
        after = s.copy()
        after[:, label] += 1
        out += s[:, label] * after.max(axis=1) / 2
    return out


def _with_audit(n_items: int, count: int, seed: int) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return positions: the first ones, and a tenth of the count at random from all."""
    n_random = math.ceil(_AUDIT * count) if count < n_items else 0
    drawn = np.random.default_rng(seed).permutation(n_items)[:n_random]
    most_doubtful = np.setdiff1d(np.arange(n_items), drawn)[: count - n_random]
    positions = np.union1d(drawn, most_doubtful)
    everything = count >= n_items
    return positions, np.isin(positions, drawn) | everything


def _figure(escalation: Escalation) -> Figure:
    total, enough = len(escalation.items), escalation.enough
    at = np.unique(np.linspace(0, total, min(_MAX_POINTS, total + 1)).round().astype(int))
    rows = [
        {"checked": int(k), "gained": float(escalation.gained[k]), "order": "most doubtful first"}
        for k in at
    ]
    rows += [{"checked": k, "gained": k / total, "order": "random order"} for k in (0, total)]
    dot = {"checked": enough, "gained": float(escalation.gained[enough])}
    palette = {"most doubtful first": BLUE, "random order": GREY}
    place = {
        "x": charts.number("checked", "items that a person checked"),
        "y": charts.share("gained", "part of what all would add"),
    }
    line = {
        **place,
        "color": charts.colour("order", palette),
        "tooltip": charts.tooltip(checked="", gained=".0%", order=""),
    }
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "line"}, "encoding": line},
        {
            "data": {"values": [dot]},
            "mark": {"type": "circle", "size": 70, "color": ORANGE},
            "encoding": place,
        },
    ]
    words = f"The dot: after {enough} of {total} items, 90% of what asking about all would add."
    spec = charts.chart(rows, height=220, layer=layers)
    return Figure("People check the most doubtful items", words, spec)
