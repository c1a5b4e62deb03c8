"""Biases of judges who compare two answers: for the first, the longer, or their own family.

- Position: the mean over pairs and orders of [chose the first] - 1/2, with a t interval over pairs,
  and how many answers change with the order. Where every pair was shown in one random order, the
  same mean is wider; where one order was used throughout, bias and truth cannot be separated.
- Length: [chose the longer] - [people chose the longer], per pair. A preference that people share
  is no bias.
- Family: [prefers its family] - [people do], on pairs with exactly one answer of the family.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import bdtr

from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats, Integers
from ..base.names import as_names
from ..base.tables import Table
from ..errors import DataError
from ..pages.sections import Table as SmallTable
from ..pages.wording import percent
from .clusters import cluster_mean, means_by
from .mixed import Mask, Mixed
from .panel import family_of
from .question import ENOUGH, Estimates, hundredths, points, table_of, too_few, whole_percent

_SWAPPED = {"given": 0, "original": 0, "swapped": 1, "reversed": 1}
_FIXED = 0.95  # share of one order beyond which orders were not random


@dataclass(frozen=True, kw_only=True)
class PairBias:
    """One bias of one judge.

    Attributes
    ----------
    judge
        The model.
    kind
        `position`, `length` or `family`.
    estimate, low, high
        The bias, between -1 and 1 (position: -1/2 to 1/2); NaN if it cannot be computed.
    n_pairs
        Pairs it was computed from.
    n_flips, to_first, p_value
        Position: pairs whose answer changes with the order, those of them that go to the first, and
        the p-value of an exact binomial test.
    both_orders
        Pairs that were shown in both orders.
    needed
        Pairs that would show a bias of 0.05, where the interval includes 0.
    problem
        Why there is no estimate.
    """

    judge: str
    kind: str
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n_pairs: int
    n_flips: int = 0
    to_first: int = 0
    p_value: float = math.nan
    both_orders: int = 0
    needed: int = 0
    problem: str = ""

    @property
    def clear(self) -> bool:
        """Whether the interval excludes no bias."""
        return bool(self.low > 0 or self.high < 0)

    @property
    def changes(self) -> float:
        """The share of answers that change with the order, NaN without both orders."""
        return self.n_flips / self.both_orders if self.both_orders else math.nan

    @property
    def sentence(self) -> str:
        """What the judge prefers, or what is missing to tell."""
        between = hundredths(self.low, self.high)
        if self.clear and self.estimate < 0:
            between = hundredths(-self.high, -self.low)
        between = between.replace("-0 ", "0 ")
        if self.problem == "order":
            return (
                f"Does {self.judge} prefer what is shown first? Bias and truth cannot be "
                "separated, because all pairs were shown in one order: swap some."
            )
        if self.problem or math.isnan(self.low):
            have = (0, ENOUGH) if self.problem == "people" else (self.n_pairs, ENOUGH, "pairs")
            return f"Is {self.judge} biased ({self.kind})? {too_few(*have)}"
        by = f"by {points(self.estimate)} points ({between})"
        if self.kind == "position":
            flips = f"; {whole_percent(self.changes)} of its answers change with the order"
            changed = flips if self.both_orders else ""
            side = "first" if self.estimate > 0 else "second"
            if self.clear:
                return f"{self.judge} prefers whatever is shown {side}, {by}{changed}."
            return (
                f"{self.judge} has no clear preference for what is shown first "
                f"({between} points){changed}."
            )
        preferred = "the longer answer" if self.kind == "length" else "answers of its own family"
        often = "more" if self.estimate > 0 else "less"
        if self.clear:
            return f"{self.judge} prefers {preferred} {often} often than people do, {by}."
        need = max(self.needed, self.n_pairs + 1)
        return (
            f"Does {self.judge} prefer {preferred} ({between} points)? "
            f"{too_few(self.n_pairs, need, 'pairs')}"
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PairBiases(Estimates[PairBias]):
    """The biases of every judge."""

    name: ClassVar[str] = "pairs"
    title: ClassVar[str] = "Biases in pairs"

    @property
    def tables(self) -> Mapping[str, Table]:
        """The biases in numbers."""
        return {"pair_biases": table_of(self.rows)}

    @property
    def sentences(self) -> tuple[str, ...]:
        """What every judge prefers."""
        return tuple(bias.sentence for bias in self.rows)

    @property
    def small_table(self) -> SmallTable:
        """The biases that can be computed, in points."""
        rows = [
            (
                bias.judge,
                bias.kind,
                f"{100 * bias.estimate:+.0f}",
                f"{100 * bias.low:+.0f} to {100 * bias.high:+.0f}",
                str(bias.n_pairs),
                percent(bias.changes),
            )
            for bias in self.rows
            if not bias.problem
        ]
        heads = ["model", "bias", "points", "95% interval", "pairs", "change with the order"]
        return SmallTable("Biases of judges who compare two answers", heads, rows, 2)


def pair_biases(
    data: Mixed,
    *,
    lengths: Mapping[str, tuple[float, float]] | None = None,
    systems: Mapping[str, tuple[str, str]] | None = None,
    families: Mapping[str, str] | None = None,
    confidence: float = 0.95,
) -> PairBiases:
    """Return the biases of every judge.

    Parameters
    ----------
    data
        Labels are the preferred answer: the first two classes are the two answers. The column
        `order` has which of them was shown first: its class, or `given` and `swapped`.
    lengths
        Item → lengths of the two answers.
    systems
        Item → the system that wrote each answer.
    families
        Judge or system → its family; by default what stands before `/`.
    """
    first_answer = first_shown(data.judges)
    names = data.judges.items.tolist()
    longer = systems_of = None
    if lengths:
        sizes = np.array([lengths.get(name, (np.nan, np.nan)) for name in names], dtype=float)
        longer = np.where(sizes[:, 0] > sizes[:, 1], 0, np.where(sizes[:, 1] > sizes[:, 0], 1, -1))
    if systems:
        systems_of = [systems.get(name) for name in names]
    people, label = _preferred(data.target_shares), data.judges.label
    biases: list[PairBias] = []
    for judge, name in enumerate(data.judge_names):
        rows = (data.judges.annotator == judge) & (label < 2)
        if first_answer is not None:
            biases.append(_position(data, name, first_answer, rows, confidence))
        second = means_by(data.judges.item[rows], label[rows] == 1, data.n_items)
        marked = {"length": longer}
        if systems_of is not None:
            own = _of_family(systems_of, family_of(name, families), families)
            marked["family"] = own if (own >= 0).any() else None
        biases += [
            PairBias(
                judge=name,
                kind=kind,
                **_excess(second, people, answers, data.cluster, confidence=confidence),
            )
            for kind, answers in marked.items()
            if answers is not None
        ]
    return PairBiases(rows=tuple(biases))


def first_shown(judges: Annotations) -> Integers | None:
    """Return which answer was shown first with every label: 0, 1, or -1 where it is unknown."""
    orders: Array | None = judges.columns.get("order")
    if orders is None or judges.n_classes < 2:
        return None
    table = dict(_SWAPPED)
    for code, name in enumerate(judges.classes[:2].tolist()):
        table[name.casefold()] = code
    words = [
        word.strip().casefold()
        for word in as_names(["" if order is None else order for order in orders.tolist()]).tolist()
    ]
    codes = np.array([table.get(word, -1) for word in words], dtype=np.int64)
    return codes if (codes >= 0).any() else None


def _position(
    data: Mixed, name: str, first_answer: Integers, rows: Mask, confidence: float
) -> PairBias:
    """Return how much more often than half a judge chooses the answer that was shown first."""
    rows = rows & (first_answer >= 0)
    if not rows.any():
        return PairBias(judge=name, kind="position", n_pairs=0, problem="few")
    chose_first = data.judges.label == first_answer
    in_order = [rows & (first_answer == order) for order in (0, 1)]
    rates = np.stack(
        [means_by(data.judges.item[part], chose_first[part], data.n_items) for part in in_order]
    )
    answered, in_both = (~np.isnan(rates)).any(axis=0), (~np.isnan(rates)).all(axis=0)
    total = np.where(in_both, rates.sum(axis=0), 1.0)  # near 0 or 2: the choice changes
    n_flips, n_first = int((np.abs(total - 1) > 0.5).sum()), int((total > 1.5).sum())
    share = float((first_answer[rows] == 0).mean())
    n_pairs, n_both = int(answered.sum()), int(in_both.sum())
    if n_both < n_pairs / 2 and max(share, 1 - share) > _FIXED:
        return PairBias(
            judge=name, kind="position", n_pairs=n_pairs, both_orders=n_both, problem="order"
        )
    value = np.nanmean(rates[:, answered], axis=0) - 0.5
    return PairBias(
        judge=name,
        kind="position",
        n_flips=n_flips,
        to_first=n_first,
        p_value=_sign_test(n_first, n_flips) if n_flips else math.nan,
        both_orders=n_both,
        **_mean_bias(value, data.cluster[answered], confidence),
    )


def _sign_test(n_first: int, n: int) -> float:
    """Return the p-value of so many of n where either is as probable: the exact binomial test."""
    return min(1.0, 2 * float(bdtr(min(n_first, n - n_first), n, 0.5)))


def _excess(
    second: Floats, people: Floats, marked: Integers, cluster: Integers, *, confidence: float
) -> dict[str, Any]:
    """Return how much more often a judge chooses the marked answer than people do.

    `second` and `people` are how often it and they choose the second: (item).
    """
    excess = second - people
    compared = (marked >= 0) & ~np.isnan(excess)
    n_pairs = int(compared.sum())
    if n_pairs < 2:
        return {"n_pairs": n_pairs, "problem": "people" if np.isnan(people).all() else "few"}
    value = np.where(marked[compared] == 1, 1.0, -1.0) * excess[compared]
    return _mean_bias(value, cluster[compared], confidence)


def _mean_bias(value: Floats, cluster: Integers, confidence: float) -> dict[str, Any]:
    """Return the mean over pairs, its t interval over clusters, and the pairs that are needed."""
    mean = cluster_mean(value, cluster)
    low, high = mean.interval(confidence) if mean.freedom else (math.nan, math.nan)
    return {
        "estimate": mean.value,
        "low": low,
        "high": high,
        "n_pairs": len(value),
        "needed": _needed(len(value), low, high),
    }


def _needed(n_pairs: int, low: float, high: float, size: float = 0.05) -> int:
    """Return how many pairs would show a bias of this size; 0 where one is shown."""
    if not low <= 0 <= high:
        return 0
    reach = (high - low) / 2
    return int(np.ceil(n_pairs * (reach / size) ** 2))


def _preferred(shares: Floats) -> Floats:
    """Return people's probability of the second answer, among those who prefer one: (item)."""
    if shares.shape[1] < 2:
        raise DataError("pairs have two answers, but there is one class")
    either = shares[:, 0] + shares[:, 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(either > 0, shares[:, 1] / either, np.nan)


def _of_family(
    systems: list[tuple[str, str] | None], family: str, families: Mapping[str, str] | None
) -> Integers:
    """Return which answer is of a judge's family, -1 for none or both: (item)."""
    out = np.full(len(systems), -1)
    for item, pair in enumerate(systems):
        if pair is None:
            continue
        own = [family_of(name, families) == family for name in pair]
        if sum(own) == 1:
            out[item] = own.index(True)
    return out
