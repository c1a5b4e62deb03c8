"""Which items to show again, for answers of other kinds than classes.

The expected disagreement of an item is the mean distance of its answers, shrunk towards that of all
items by three pairs. One more answer lowers the uncertainty of the consensus from d / n to
d / (n + 1); items are listed by this gain, and an item may be shown several times. The distance of
numbers is their absolute difference.

>>> from dissensus.answers import Texts
>>> texts = Texts.from_values(list("aabb"), list("xyxy"), ["a b", "a b", "c d", "e f"])
>>> plan(texts, budget=1).table["item"].tolist()
['b']
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from ..answers import KINDS
from ..base.arrays import Array
from ..errors import DataError, OptionError
from ..metrics.distances import Distances
from .planner import Plan, plan

_PAIRS = 3.0  # pairs of answers at the mean distance, added to those of an item


@plan.for_kind("numbers", *KINDS)
def plan_items(answers: Any, *, budget: float, per_item: int | None) -> Plan:
    """Return which items to show again."""
    if budget < 1:
        raise OptionError(f"budget = {budget:g}, but it must be at least 1")
    if len(answers) == 0:
        raise DataError("there is no answer to plan from")
    within = Distances.of(answers)
    if len(within.first) == 0:
        raise DataError("no item has two answers, so disagreement is unknown; ask for a second")
    overall = float(within.distance.mean())
    size = answers.labels_per_item.astype(np.int64)
    pairs = size * (size - 1) / 2
    distance = within.by_item(answers)
    expected = (np.nan_to_num(distance) * pairs + _PAIRS * overall) / (pairs + _PAIRS)
    most = np.full(answers.n_items, np.iinfo(np.int64).max if per_item is None else per_item)
    n_more, gain = _spend(expected, size, most, int(budget))
    order = np.lexsort((np.arange(len(gain)), -gain, -n_more))
    order = order[n_more[order] > 0]
    order = order[np.argsort(-gain[order], kind="stable")]
    table: dict[str, Array] = {
        "item": answers.items[order],
        "n_answers": size[order],
        "distance": distance[order],
        "expected_distance": expected[order],
        "more": n_more[order],
        "gain": gain[order],
    }
    return Plan(
        kind=answers.kind,
        policy="distance",
        annotations=answers,
        item=order,
        gain=gain[order],
        cost=n_more[order].astype(float),
        reason=(
            f"Items are chosen by the expected distance of their answers, {overall:.3f} on "
            "average, over the number of answers; annotators are not chosen."
        ),
        items=table,
        distance=overall,
        budget=int(budget),
    )


def _spend(expected: Array, size: Array, most: Array, budget: int) -> tuple[Array, Array]:
    """Return how many answers every item gets, greedily, and the summed gain."""

    def next_gain(item: int, n: int) -> float:
        # Without any answer, nothing is known: the first one gains the most.
        return float(expected[item] * (1 / n - 1 / (n + 1))) if n else float(expected[item] * 2)

    n_more, gain = np.zeros(len(size), dtype=np.int64), np.zeros(len(size))
    heap = [(-next_gain(i, int(n)), i) for i, n in enumerate(size.tolist()) if n < most[i]]
    heapq.heapify(heap)
    while budget and heap:
        value, item = heapq.heappop(heap)
        n_more[item] += 1
        gain[item] -= value
        budget -= 1
        n = int(size[item] + n_more[item])
        if n < most[item]:
            heapq.heappush(heap, (-next_gain(item, n), item))
    return n_more, gain
