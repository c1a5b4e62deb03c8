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
from ._candidates import Pairs, best_pairs, listed_pairs, random_pairs, width_for
from ._lookahead import Lookahead
from ._posterior_state import PosteriorState, pair_keys
from .policy import ItemPolicy, PairPolicy, Policy, mean_noise_model

__all__ = ["Constraints", "Selection", "choose"]

_TRIES = 3
_SPARE = 4  # items to look at for every label that can be paid
_LEAST = 2000  # items to look at in any case


@dataclass(frozen=True, eq=False)
class Constraints:
    """Under what terms labels can be had."""

    budget: float
    cost: Floats  # (annotator)
    room: Integers  # (annotator): labels that they may still give
    per_item: int | None = None  # more labels of an item, at most
    most: int | None = None  # labels, at most
    allowed_pairs: Integers | None = None  # keys of the only pairs that can be asked
    rounds: int = 8  # in which the budget is spent where an item may get several labels


class Selection(NamedTuple):
    """Labels to ask for, in the order in which they were chosen."""

    item: Integers
    annotator: Integers
    gain: Floats  # what the answer tells about the truth, in nats
    before: Floats  # probability that the item's label is right
    after: Floats  # the same once the answer has come


def choose(
    state: PosteriorState, policy: Policy, constraints: Constraints, rng: np.random.Generator
) -> Selection:
    """Return what to ask for."""
    lookahead = Lookahead(state.posterior)
    mean = mean_noise_model(state)
    room, left = constraints.room.copy(), constraints.budget
    trusted = policy.trusted(state) if isinstance(policy, PairPolicy) else np.inf
    given = np.zeros(len(room), dtype=np.int64)  # (annotator): labels in this plan
    planned, rounds = np.empty(0, dtype=np.int64), list[Selection]()
    misses = 0
    count, most = 0, constraints.most if constraints.most is not None else np.iinfo(np.int64).max
    cheapest = float(constraints.cost[room > 0].min(initial=np.inf))
    share = left if constraints.per_item == 1 else max(left / constraints.rounds, cheapest)
    while count < most:
        may = (room > 0) & (constraints.cost <= left)
        if not may.any():
            break
        now = np.minimum(room, np.maximum(np.ceil(trusted) - given, 0)).astype(np.int64)
        free = np.flatnonzero(may & (now > 0))
        if len(free) == 0:
            trusted = 2 * trusted
            continue
        spend = min(share, left)
        if spend < constraints.cost[free].min():
            spend = left
        pairs = _look(state, policy, constraints, lookahead, free, now, spend, rng)
        pairs = pairs.unknown(planned, state.annotations.n_annotators)
        utility = _utility(state, policy, lookahead, pairs, rng)
        if isinstance(policy, PairPolicy):
            utility = utility / constraints.cost[pairs.annotator]
        taken = _take(pairs, utility, constraints.cost, now, spend, most - count)
        if len(taken) == 0 and len(free) < may.sum():
            trusted = 2 * trusted
            continue
        if len(taken) == 0:
            misses += 1  # candidates are partly drawn: another draw may find some
            if misses == _TRIES:
                break
            continue
        item, annotator = pairs.item[taken], pairs.annotator[taken]
        rounds.append(
            Selection(
                item,
                annotator,
                lookahead.information(item, annotator, mean),
                lookahead.accuracy(item),
                lookahead.accuracy_after(item, annotator, mean.matrix),
            )
        )
        lookahead.ask(item, annotator, mean.matrix)
        np.subtract.at(room, annotator, 1)
        np.add.at(given, annotator, 1)
        left -= float(constraints.cost[annotator].sum())
        count += len(taken)
        planned = np.union1d(planned, pair_keys(item, annotator, state.annotations.n_annotators))
    return _joined(rounds)


def _look(
    state: PosteriorState,
    policy: Policy,
    constraints: Constraints,
    lookahead: Lookahead,
    free: Integers,
    room: Integers,
    spend: float,
    rng: np.random.Generator,
) -> Pairs:
    """Return pairs that are worth a look and may be asked."""
    n_annotators = state.annotations.n_annotators
    n_seen = state.annotations.labels_per_item + lookahead.pending
    wanting = np.ones(len(n_seen), dtype=bool)
    if constraints.per_item is not None:
        wanting = lookahead.pending < constraints.per_item
    items = np.flatnonzero(wanting)
    if constraints.allowed_pairs is not None:
        pairs = listed_pairs(constraints.allowed_pairs, free, items, n_annotators)
        return pairs.unknown(state.known_pairs, n_annotators)
    payable = min(spend / constraints.cost[free].min(), len(items))
    width = width_for(payable, room[free])
    n_looked = max(_SPARE * int(min(payable, width * np.median(room[free]))), _LEAST)
    if len(items) > n_looked:
        value = (
            policy.utility(state, lookahead.pending, lookahead.remaining_entropy)
            if isinstance(policy, ItemPolicy)
            else lookahead.remaining_entropy
        )[items]
        value = value + 1e-9 * rng.random(len(items))
        # In order, as random draws follow it.
        items = items[np.sort(np.argpartition(-value, n_looked)[:n_looked])]
    if isinstance(policy, PairPolicy):
        noise_model = policy.noise_model(state)
        pairs = best_pairs(
            items, free, lookahead, noise_model, constraints.cost, n_seen, width, rng
        )
    else:
        pairs = random_pairs(items, free, rng)
    return pairs.unknown(state.known_pairs, n_annotators)


def _utility(
    state: PosteriorState,
    policy: Policy,
    lookahead: Lookahead,
    pairs: Pairs,
    rng: np.random.Generator,
) -> Floats:
    """Return how much pairs are worth; equals are put in a random order by a trifle."""
    if isinstance(policy, PairPolicy):
        utility = lookahead.information(pairs.item, pairs.annotator, policy.noise_model(state))
        return utility * (1 + 1e-6 * rng.random(len(utility)))
    assert isinstance(policy, ItemPolicy)
    value = policy.utility(state, lookahead.pending, lookahead.remaining_entropy)
    value = value + 1e-6 * rng.random(len(value))
    return value[pairs.item] + 1e-9 * rng.random(len(pairs.item))


def _take(
    pairs: Pairs, utility: Floats, cost: Floats, room: Integers, spend: float, most: int
) -> Integers:
    """Return which pairs to take, the worthiest first, one per item.

    Whether a pair can be taken depends on all before it, hence the loop; it ends with the budget.
    It also ends when half of the candidates have no room left: others may be as good.
    """
    order = np.argsort(-utility, kind="stable")
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


def _joined(rounds: list[Selection]) -> Selection:
    none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
    every = [Selection(none, none, nothing, nothing, nothing), *rounds]
    return Selection(
        np.concatenate([one.item for one in every]),
        np.concatenate([one.annotator for one in every]),
        np.concatenate([one.gain for one in every]),
        np.concatenate([one.before for one in every]),
        np.concatenate([one.after for one in every]),
    )
