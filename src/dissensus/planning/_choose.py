"""Choose labels to request: greedily, within budget and constraints.

Pairs are taken in the order of utility per cost, skipping annotators at their limit and items that
have been served. Where an item may get several labels, the budget is spent in a few rounds with one
label per item each, and pending labels count before the next round. Annotators beyond the number
of labels they are trusted with are skipped, too, until no other is left; then it is doubled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..base.arrays import Floats, Integers
from ._candidates import BEST, WIDE, Pairs, best_pairs, listed_pairs, random_pairs
from .choosing import Constraints
from .information import Lookahead
from ._posterior_state import PosteriorState, pair_keys
from .policy import ItemPolicy, PairPolicy, Policy, noise_model_of

_TRIES = 3
_SPARE = 4  # items to consider for every affordable label
_MIN_ITEMS = 2000  # items to consider in any case


class Selection(NamedTuple):
    """Labels to request, in the order in which they were chosen."""

    item: Integers
    annotator: Integers
    gain: Floats  # information of the answer about the truth, in nats
    before: Floats  # probability that the item's label is right
    after: Floats  # the same after the answer


def choose(
    state: PosteriorState, policy: Policy, constraints: Constraints, rng: np.random.Generator
) -> Selection:
    """Return the labels to request."""
    none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
    rounds = [Selection(none, none, nothing, nothing, nothing)]
    chooser = _Chooser(state, policy, constraints, rng)
    while (selection := chooser.next_round()) is not None:
        rounds.append(selection)
    return Selection(*map(np.concatenate, zip(*rounds, strict=True)))


class _Chooser:
    """What has been chosen so far, and what is left to spend."""

    def __init__(
        self,
        state: PosteriorState,
        policy: Policy,
        constraints: Constraints,
        rng: np.random.Generator,
    ) -> None:
        self.state, self.policy, self.constraints, self.rng = state, policy, constraints, rng
        self.lookahead = Lookahead(state.posterior)
        self.mean = noise_model_of(state)
        self.room, self.left = constraints.room.copy(), constraints.budget
        self.n_labels = np.inf if constraints.max_labels is None else constraints.max_labels
        self.trusted = policy.trusted(state) if isinstance(policy, PairPolicy) else np.inf
        self.given = np.zeros(len(self.room), dtype=np.int64)  # (annotator): labels in this plan
        self.planned = np.empty(0, dtype=np.int64)  # keys of pairs
        self.misses = 0
        cheapest = float(constraints.cost[self.room > 0].min(initial=np.inf))
        self.per_round = max(self.left / constraints.rounds, cheapest)
        if constraints.per_item == 1:
            self.per_round = self.left

    def next_round(self) -> Selection | None:
        """Return the next labels, at most one per item; `None` at the end."""
        cost = self.constraints.cost
        n_annotators = self.state.annotations.n_annotators
        while self.misses < _TRIES and self.n_labels > 0:
            able = (self.room > 0) & (cost <= self.left)
            if not able.any():
                break
            trusted = np.maximum(np.ceil(self.trusted) - self.given, 0)
            room = np.minimum(self.room, trusted).astype(np.int64)
            free = np.flatnonzero(able & (room > 0))
            if len(free) == 0:
                self.trusted = 2 * self.trusted
                continue
            spend = min(self.per_round, self.left)
            if spend < cost[free].min():
                spend = self.left
            pairs = self._candidates(free, room, spend).unknown(self.planned, n_annotators)
            taken = _take(pairs, self._utility(pairs), cost, room, spend, self.n_labels)
            if len(taken):
                return self._request(pairs.item[taken], pairs.annotator[taken])
            if len(free) < able.sum():
                self.trusted = 2 * self.trusted
            else:
                self.misses += 1  # candidates are partly random: another draw may find some
        return None

    def _request(self, item: Integers, annotator: Integers) -> Selection:
        """Plan labels, which are pending from now on."""
        selection = Selection(
            item,
            annotator,
            self.lookahead.information(item, annotator, self.mean),
            self.lookahead.accuracy(item),
            self.lookahead.accuracy_after(item, annotator, self.mean.matrix),
        )
        self.lookahead.request(item, annotator, self.mean.matrix)
        np.subtract.at(self.room, annotator, 1)
        np.add.at(self.given, annotator, 1)
        self.left -= float(self.constraints.cost[annotator].sum())
        self.n_labels -= len(item)
        keys = pair_keys(item, annotator, self.state.annotations.n_annotators)
        self.planned = np.union1d(self.planned, keys)
        return selection

    def _candidates(self, free: Integers, room: Integers, spend: float) -> Pairs:
        """Return promising pairs that may be requested."""
        annotations, constraints = self.state.annotations, self.constraints
        pending, n_annotators = self.lookahead.pending, annotations.n_annotators
        items = np.arange(len(pending))
        if constraints.per_item is not None:
            items = np.flatnonzero(pending < constraints.per_item)
        if constraints.allowed_pairs is not None:
            pairs = listed_pairs(constraints.allowed_pairs, free, items, n_annotators)
            return pairs.unknown(self.state.known_pairs, n_annotators)
        affordable = min(spend / constraints.cost[free].min(), len(items))
        usual = float(np.median(room[free]))
        width = int(np.clip(np.ceil(affordable / max(usual, 1.0)), BEST, WIDE))  # good annotators
        n_items = _SPARE * int(min(affordable, width * usual))
        n_items = max(n_items, _MIN_ITEMS)
        if len(items) > n_items:
            value = self._item_utility()[items] + 1e-9 * self.rng.random(len(items))
            # In order, as random draws follow it.
            items = items[np.sort(np.argpartition(-value, n_items)[:n_items])]
        if isinstance(self.policy, PairPolicy):
            pairs = best_pairs(
                items,
                free,
                self.lookahead.posterior,
                self.policy.noise_model(self.state),
                constraints.cost,
                width + int((annotations.labels_per_item + pending)[items].max(initial=0)),
                self.rng,
            )
        else:
            pairs = random_pairs(items, free, self.rng)
        return pairs.unknown(self.state.known_pairs, n_annotators)

    def _item_utility(self) -> Floats:
        if isinstance(self.policy, ItemPolicy):
            entropy = self.lookahead.remaining_entropy
            return self.policy.utility(self.state, self.lookahead.pending, entropy)
        return self.lookahead.remaining_entropy

    def _utility(self, pairs: Pairs) -> Floats:
        """Return the utility of pairs per cost; ties are broken at random."""
        rng = self.rng
        if isinstance(self.policy, PairPolicy):
            noise_model = self.policy.noise_model(self.state)
            utility = self.lookahead.information(pairs.item, pairs.annotator, noise_model)
            utility = utility * (1 + 1e-6 * rng.random(len(utility)))
            return utility / self.constraints.cost[pairs.annotator]
        value = self._item_utility()
        value = value + 1e-6 * rng.random(len(value))
        return value[pairs.item] + 1e-9 * rng.random(len(pairs.item))


def _take(
    pairs: Pairs, utility: Floats, cost: Floats, room: Integers, spend: float, n_labels: float
) -> Integers:
    """Return which pairs to take, the highest utility first, one per item.

    Whether a pair can be taken depends on all before it, hence the loop; it ends with the budget,
    or when half of the annotators have no room left: other candidates may be as good.
    """
    order = np.argsort(-utility, kind="stable")
    items, annotators = pairs.item[order].tolist(), pairs.annotator[order].tolist()
    price, space, served = cost.tolist(), room.tolist(), set[int]()
    taken, full, n_annotators = list[int](), 0, len(set(annotators))
    cheapest = float(cost[room > 0].min(initial=np.inf))
    for position, (item, annotator) in enumerate(zip(items, annotators, strict=True)):
        if item in served or price[annotator] > spend + 1e-9 or not space[annotator]:
            continue
        taken.append(position)
        served.add(item)
        space[annotator] -= 1
        spend -= price[annotator]
        full += not space[annotator]
        if len(taken) == n_labels or spend + 1e-9 < cheapest or 2 * full > n_annotators:
            break
    return order[np.array(taken, dtype=np.int64)]
