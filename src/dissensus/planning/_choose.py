"""Choose labels to ask for: the best first, within budget and limits.

Pairs are taken in the order of what they are worth for their cost. One that its annotator has no
room for, or whose item has been served, is passed over. Where an item may get several labels, the
budget is spent in a few turns with one label per item each, and what is on its way counts before
the next turn. Annotators who are trusted with no more labels are passed over, too, until nobody
else is left; then everybody is trusted with twice as many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._relation import Floats, Integers
from ._base import ItemPolicy, PairPolicy, Policy, mean_voices
from ._candidates import Pairs, best_pairs, listed_pairs, random_pairs, width_for
from ._lookahead import Hopes
from ._posterior_state import Outlook, pair_keys

__all__ = ["Selection", "Terms", "choose"]

_TRIES = 3
_SPARE = 4  # items to look at for every label that can be paid
_LEAST = 2000  # items to look at in any case


@dataclass(frozen=True, eq=False)
class Terms:
    """Under what terms labels can be had."""

    budget: float
    cost: Floats  # (annotator)
    room: Integers  # (annotator): labels that they may still give
    per_item: int | None = None  # more labels of an item, at most
    most: int | None = None  # labels, at most
    open_pairs: Integers | None = None  # keys of the only pairs that can be asked
    turns: int = 8  # in which the budget is spent where an item may get several labels


class Selection(NamedTuple):
    """Labels to ask for, in the order in which they were chosen."""

    item: Integers
    annotator: Integers
    gain: Floats  # what the answer tells about the truth, in nats
    before: Floats  # probability that the item's label is right
    after: Floats  # the same once the answer has come


def choose(outlook: Outlook, policy: Policy, terms: Terms, rng: np.random.Generator) -> Selection:
    """Return what to ask for."""
    hopes = Hopes(outlook.posterior)
    mean = mean_voices(outlook)
    room, left = terms.room.copy(), terms.budget
    trusted = policy.trusted(outlook) if isinstance(policy, PairPolicy) else np.inf
    given = np.zeros(len(room), dtype=np.int64)  # (annotator): labels in this plan
    planned, turns = np.empty(0, dtype=np.int64), list[Selection]()
    misses = 0
    count, most = 0, terms.most if terms.most is not None else np.iinfo(np.int64).max
    cheapest = float(terms.cost[room > 0].min(initial=np.inf))
    share = left if terms.per_item == 1 else max(left / terms.turns, cheapest)
    while count < most:
        may = (room > 0) & (terms.cost <= left)
        if not may.any():
            break
        now = np.minimum(room, np.maximum(np.ceil(trusted) - given, 0)).astype(np.int64)
        free = np.flatnonzero(may & (now > 0))
        if len(free) == 0:
            trusted = 2 * trusted
            continue
        spend = min(share, left)
        if spend < terms.cost[free].min():
            spend = left
        pairs = _look(outlook, policy, terms, hopes, free, now, spend, rng)
        pairs = pairs.unknown(planned, outlook.annotations.n_annotators)
        worth = _worth(outlook, policy, hopes, pairs, rng)
        if isinstance(policy, PairPolicy):
            worth = worth / terms.cost[pairs.annotator]
        taken = _take(pairs, worth, terms.cost, now, spend, most - count)
        if len(taken) == 0 and len(free) < may.sum():
            trusted = 2 * trusted
            continue
        if len(taken) == 0:
            misses += 1  # candidates are partly drawn: another draw may find some
            if misses == _TRIES:
                break
            continue
        item, annotator = pairs.item[taken], pairs.annotator[taken]
        turns.append(
            Selection(
                item,
                annotator,
                hopes.information(item, annotator, mean),
                hopes.accuracy(item),
                hopes.accuracy_after(item, annotator, mean.matrix),
            )
        )
        hopes.ask(item, annotator, mean.matrix)
        np.subtract.at(room, annotator, 1)
        np.add.at(given, annotator, 1)
        left -= float(terms.cost[annotator].sum())
        count += len(taken)
        planned = np.union1d(planned, pair_keys(item, annotator, outlook.annotations.n_annotators))
    return _joined(turns)


def _look(
    outlook: Outlook,
    policy: Policy,
    terms: Terms,
    hopes: Hopes,
    free: Integers,
    room: Integers,
    spend: float,
    rng: np.random.Generator,
) -> Pairs:
    """Return pairs that are worth a look and may be asked."""
    n_annotators = outlook.annotations.n_annotators
    seen = outlook.annotations.labels_per_item + hopes.waiting
    wanting = np.ones(len(seen), dtype=bool)
    if terms.per_item is not None:
        wanting = hopes.waiting < terms.per_item
    items = np.flatnonzero(wanting)
    if terms.open_pairs is not None:
        pairs = listed_pairs(terms.open_pairs, free, items, n_annotators)
        return pairs.unknown(outlook.asked, n_annotators)
    payable = min(spend / terms.cost[free].min(), len(items))
    width = width_for(payable, room[free])
    looked = max(_SPARE * int(min(payable, width * np.median(room[free]))), _LEAST)
    if len(items) > looked:
        value = (
            policy.worth(outlook, hopes.waiting, hopes.doubt)
            if isinstance(policy, ItemPolicy)
            else hopes.doubt
        )[items]
        value = value + 1e-9 * rng.random(len(items))
        items = items[np.sort(np.argpartition(-value, looked)[:looked])]  # draws go by place
    if isinstance(policy, PairPolicy):
        voices = policy.voices(outlook)
        pairs = best_pairs(items, free, hopes, voices, terms.cost, seen, width, rng)
    else:
        pairs = random_pairs(items, free, rng)
    return pairs.unknown(outlook.asked, n_annotators)


def _worth(
    outlook: Outlook, policy: Policy, hopes: Hopes, pairs: Pairs, rng: np.random.Generator
) -> Floats:
    """Return how much pairs are worth; equals are put in a random order by a trifle."""
    if isinstance(policy, PairPolicy):
        worth = hopes.information(pairs.item, pairs.annotator, policy.voices(outlook))
        return worth * (1 + 1e-6 * rng.random(len(worth)))
    assert isinstance(policy, ItemPolicy)
    value = policy.worth(outlook, hopes.waiting, hopes.doubt)
    value = value + 1e-6 * rng.random(len(value))
    return value[pairs.item] + 1e-9 * rng.random(len(pairs.item))


def _take(
    pairs: Pairs, worth: Floats, cost: Floats, room: Integers, spend: float, most: int
) -> Integers:
    """Return which pairs to take, the worthiest first, one per item.

    Whether a pair can be taken depends on all before it, hence the loop; it ends with the budget.
    It also ends when half of the candidates have no room left: others may be as good.
    """
    order = np.argsort(-worth, kind="stable")
    items, annotators = pairs.item[order].tolist(), pairs.annotator[order].tolist()
    price, space, served = cost.tolist(), room.tolist(), set[int]()
    taken, full, crowd = list[int](), 0, len(set(annotators))
    cheapest = float(cost[room > 0].min(initial=np.inf))
    for position, (item, annotator) in enumerate(zip(items, annotators, strict=True)):
        if item in served or price[annotator] > spend + 1e-9:
            continue
        if space[annotator]:
            taken.append(position)
            served.add(item)
            space[annotator] -= 1
            spend -= price[annotator]
            full += not space[annotator]
            if len(taken) == most or spend + 1e-9 < cheapest or 2 * full > crowd:
                break
    return order[np.array(taken, dtype=np.int64)]


def _joined(turns: list[Selection]) -> Selection:
    none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
    every = [Selection(none, none, nothing, nothing, nothing), *turns]
    return Selection(
        np.concatenate([one.item for one in every]),
        np.concatenate([one.annotator for one in every]),
        np.concatenate([one.gain for one in every]),
        np.concatenate([one.before for one in every]),
        np.concatenate([one.after for one in every]),
    )
