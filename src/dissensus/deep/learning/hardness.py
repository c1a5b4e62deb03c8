"""What the scores of hard items share: the margins, the items to prune, and the table."""

from __future__ import annotations

from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from annotated_types import Interval

from ...base.names import Names, decode
from ...base.arrays import Array, Floats, FrozenArrays, Integers
from ...answers.annotations import Annotations
from ...errors import MethodError
from ...params import Count, Settings
from ...result import Table
from .margins import Kind, Scale

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Margins(Settings):
    """Which margins are used, and how many items are pruned.

    Parameters
    ----------
    alpha
        Share of items to prune, those with the lowest scores; at least one.
    margin
        A label's score minus the second highest (top2, Yang and Koyejo), or minus the highest of
        another class (pleiss).
    top
        Rank of the score that is subtracted, minus one with top2.
    scale
        Scores: probabilities or logits.
    """

    alpha: Annotated[float, Interval(ge=0, lt=1)] = 0.01
    margin: Kind = "top2"
    top: Count = 1
    scale: Scale = "probabilities"

    def check(self, annotations: Annotations) -> None:
        """Fail where there is no class to compare a label with."""
        if annotations.n_classes <= self.top:
            classes = f"{annotations.n_classes} class{'es' if annotations.n_classes > 1 else ''}"
            raise MethodError(f"{classes}, but margins with top = {self.top} need {self.top + 1}")


@dataclass(frozen=True, eq=False, repr=False)
class Hardness(FrozenArrays):
    """Items with a score, the lower the harder.

    Attributes
    ----------
    annotations
        The annotations that were scored.
    pruned
        Which items are too hard to learn from; never one without a score.
    learned
        Share of the labels that are the network's best class at the end. Where it is no larger
        than `common`, nothing was learned, and scores mean nothing.
    common
        Share of the most frequent label.
    epochs
        How many epochs the network was trained.
    label
        The label of every item, by code; -1 for none.
    """

    measure: ClassVar[str]  # what its scores are called

    annotations: Annotations
    pruned: Flags  # (item)
    learned: float
    common: float
    epochs: int
    label: Integers  # (item)

    def __repr__(self) -> str:
        n_items = self.annotations.n_items
        return f"<{type(self).__name__}: {int(self.pruned.sum())} of {n_items} items too hard>"

    @property
    def score(self) -> Floats:
        """The score of every item; NaN where there is none: (item)."""
        score: Floats = getattr(self, self.measure)
        return score

    @property
    def hardest(self) -> Integers:
        """Items by score, the hardest first, those without one last: (item)."""
        return np.argsort(self.score, kind="stable")

    @property
    def too_hard(self) -> Names:
        """The names of the pruned items."""
        return self.annotations.items[self.pruned]

    @property
    def kept(self) -> Annotations:
        """The annotations on the remaining items; the pruned ones stay declared, without labels."""
        return self.annotations.keep(~self.pruned[self.annotations.item])

    @property
    def labels(self) -> Names:
        """The label of every item, by name; `None` for none."""
        return decode(self.annotations.classes, self.label)

    def table(self) -> Table:
        """Return a row per item."""
        return {
            "item": self.annotations.items,
            self.measure: self.score,
            "label": self.labels,
            "n_labels": self.annotations.labels_per_item,
            "pruned": self.pruned,
        }


def share_learned(probability: Floats, label: Array) -> tuple[float, float]:
    """Return the share of labels that are the best class, and of the most frequent label."""
    if not len(label):
        return np.nan, np.nan
    known = float((probability.argmax(axis=1) == label).mean())
    return known, float(np.bincount(label).max() / len(label))


def at_most_quantile(score: Floats, alpha: float) -> tuple[float, Flags]:
    """Return a quantile of the known scores, and which are at or below it."""
    known = ~np.isnan(score)
    if not known.any():
        return np.nan, known
    quantile = float(np.quantile(score[known], alpha))
    return quantile, known & (score <= quantile)


def split_settings(kinds: tuple[type[Settings], ...], given: dict[str, Any]) -> list[Any]:
    """Return settings of several kinds from one mapping; every name belongs to one of them."""
    known = {field.name: kind for kind in kinds for field in fields(kind)}
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise MethodError(f"no setting {name!r}; {hint}")
    return [
        kind(**{name: value for name, value in given.items() if known[name] is kind})
        for kind in kinds
    ]
