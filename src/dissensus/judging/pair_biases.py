"""Biases of judges who compare two answers: for the first, the longer, or their own family.

- Position: the mean over pairs and orders of [chose the first] - 1/2, with a t interval over pairs,
  and how many answers change with the order. Where every pair was shown in one random order, the
  same mean is wider; where one order was used throughout, bias and truth cannot be separated.
- Length: [chose the longer] - [people chose the longer], per pair. A preference that people share
  is no bias.
- Family: [prefers its family] - [people do], on pairs with exactly one answer of the family.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, stdtrit

from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats, Integers
from ..base.names import as_names
from ..errors import DataError
from .mixed import Mixed
from .panel import family_of

_SWAPPED = {"given": 0, "original": 0, "swapped": 1, "reversed": 1}
_FIXED = 0.95  # share of one order beyond which orders were not random


@dataclass(frozen=True)
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
    estimate: float
    low: float
    high: float
    n_pairs: int
    n_flips: int = 0
    to_first: int = 0
    p_value: float = float("nan")
    both_orders: int = 0
    needed: int = 0
    problem: str = ""

    @property
    def clear(self) -> bool:
        """Whether the interval excludes no bias."""
        return bool(self.low > 0 or self.high < 0)


def pair_biases(
    data: Mixed,
    *,
    lengths: Mapping[str, tuple[float, float]] | None = None,
    systems: Mapping[str, tuple[str, str]] | None = None,
    families: Mapping[str, str] | None = None,
    confidence: float = 0.95,
) -> tuple[PairBias, ...]:
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
    shown = first_shown(data.judges)
    names = data.judges.items.tolist()
    longer = systems_of = None
    if lengths:
        sizes = np.array([lengths.get(name, (np.nan, np.nan)) for name in names], dtype=float)
        longer = np.where(sizes[:, 0] > sizes[:, 1], 0, np.where(sizes[:, 1] > sizes[:, 0], 1, -1))
    if systems:
        systems_of = [systems.get(name) for name in names]
    people = _preferred(data.target_shares)
    out = []
    for judge, name in enumerate(data.judge_names):
        mine = data.judges.annotator == judge
        item, label = data.judges.item[mine].astype(np.int64), data.judges.label[mine]
        picks = _means(item, (label == 1).astype(float), np.isin(label, (0, 1)), data.n_items)
        if shown is not None:
            out.append(_position(name, item, label, shown[mine], data, confidence))
        if longer is not None:
            out.append(_excess(name, "length", picks, people, longer, data, confidence))
        if systems_of is not None:
            own = _of_family(systems_of, family_of(name, families), families)
            if (own >= 0).any():
                out.append(_excess(name, "family", picks, people, own, data, confidence))
    return tuple(out)


def first_shown(judges: Annotations) -> Integers | None:
    """Return which answer was shown first with every label: 0, 1, or -1 where it is unknown."""
    given: Array | None = judges.columns.get("order")
    if given is None or judges.n_classes < 2:
        return None
    table = dict(_SWAPPED)
    for code, name in enumerate(judges.classes[:2].tolist()):
        table[name.casefold()] = code
    words = [
        word.strip().casefold()
        for word in as_names(["" if one is None else one for one in given.tolist()]).tolist()
    ]
    found = np.array([table.get(word, -1) for word in words], dtype=np.int64)
    return found if (found >= 0).any() else None


def _position(
    name: str, item: Integers, label: Array, shown: Integers, data: Mixed, confidence: float
) -> PairBias:
    used = (shown >= 0) & np.isin(label, (0, 1))
    item, label, shown = item[used], label[used].astype(np.int64), shown[used]
    nan = float("nan")
    if not len(item):
        return PairBias(name, "position", nan, nan, nan, 0, problem="few")
    chose_first = (label == shown).astype(float)
    rates, each = [], []
    for order in (0, 1):
        here = shown == order
        rates.append(_means(item[here], chose_first[here], np.ones(here.sum(), bool), data.n_items))
        each.append(
            _means(
                item[here],
                (label[here] == 1).astype(float),
                np.ones(here.sum(), bool),
                data.n_items,
            )
        )
    both = ~np.isnan(rates[0]) & ~np.isnan(rates[1])
    flips = both & (np.abs(each[0] - each[1]) > 0.5)
    to_first = flips & (rates[0] + rates[1] > 1)
    n_flips, n_first = int(flips.sum()), int(to_first.sum())
    stack = np.stack(rates)
    known = (~np.isnan(stack)).any(axis=0)
    value = np.nanmean(stack[:, known], axis=0) - 0.5
    share = float((shown == 0).mean())
    n_pairs, n_both = int(known.sum()), int(both.sum())
    if n_both < n_pairs / 2 and max(share, 1 - share) > _FIXED:
        return PairBias(
            name, "position", nan, nan, nan, n_pairs, both_orders=n_both, problem="order"
        )
    estimate, low, high = mean_interval(value, data.cluster[known], confidence)
    p_value = _sign_test(n_first, n_flips) if n_flips else nan
    return PairBias(
        name,
        "position",
        estimate,
        low,
        high,
        n_pairs,
        n_flips,
        n_first,
        p_value,
        n_both,
        _needed(value, low, high),
    )


def _sign_test(n_first: int, n: int) -> float:
    """Return the p-value of so many of n where either is as probable: the exact binomial test."""
    return min(1.0, 2 * float(bdtr(min(n_first, n - n_first), n, 0.5)))


def _excess(
    name: str,
    kind: str,
    picks: Floats,
    people: Floats,
    marked: Integers,
    data: Mixed,
    confidence: float,
) -> PairBias:
    """Return how much more often a judge chooses the marked answer than people do."""
    used = (marked >= 0) & ~np.isnan(picks) & ~np.isnan(people)
    nan = float("nan")
    if used.sum() < 2:
        problem = "people" if np.isnan(people).all() else "few"
        return PairBias(name, kind, nan, nan, nan, int(used.sum()), problem=problem)
    sign = np.where(marked[used] == 1, 1.0, -1.0)
    value = sign * (picks[used] - people[used])
    estimate, low, high = mean_interval(value, data.cluster[used], confidence)
    return PairBias(
        name, kind, estimate, low, high, int(used.sum()), needed=_needed(value, low, high)
    )


def mean_interval(
    value: Floats, cluster: Integers, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Return a mean with a t interval over clusters."""
    n, mean = len(value), float(value.mean())
    codes = np.unique(cluster, return_inverse=True)[1]
    sums = np.bincount(codes, value - mean)
    many = len(sums)
    if many < 2:
        return mean, float("nan"), float("nan")
    error = float(np.sqrt((sums**2).sum() * many / (many - 1))) / n
    reach = float(stdtrit(many - 1, (1 + confidence) / 2)) * error
    return mean, mean - reach, mean + reach


def _needed(value: Floats, low: float, high: float, size: float = 0.05) -> int:
    """Return how many pairs would show a bias of this size; 0 where one is shown."""
    if not low <= 0 <= high:
        return 0
    reach = (high - low) / 2
    return int(np.ceil(len(value) * (reach / size) ** 2))


def _means(item: Integers, value: Floats, used: npt.NDArray[np.bool_], n_items: int) -> Floats:
    """Return the mean of every item, NaN without values."""
    with np.errstate(invalid="ignore"):
        return np.bincount(item[used], value[used], minlength=n_items) / np.bincount(
            item[used], minlength=n_items
        )


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
