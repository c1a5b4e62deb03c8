"""Choose labels to request: greedily, within budget and constraints.

Pairs of item and annotator are taken in the order of utility per cost, skipping annotators at their
limit and items that have been served. Where an item may get several labels, the budget is spent in
a few rounds with one label per item each, and pending labels count before the next round.
Annotators beyond the number of labels they are trusted with are skipped, too, until no other is
left; then it is doubled.

Candidate pairs are found without scoring all pairs. Items are grouped by their two most probable
classes and these probabilities, rounded. For every group all annotators are scored once, and its
items get the best of them, and a few at random, as candidates. So the cost is that of groups ×
annotators and of the candidates, never of items × annotators. Where only listed pairs may be
requested, these are the candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..aggregation.aggregation import ClassAggregation
from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..base.arrays import Array, Floats, Integers
from ..base.names import abbreviate, as_names, indices_of, text, union
from ..errors import DataError, OptionError
from ..formats import as_answers
from .information import Lookahead, PosteriorState, information_table, pair_keys
from .policies import ItemPolicy, NoiseModel, PairPolicy, Policy, noise_model_of

BEST, WIDE, _DRAWN = 8, 32, 4  # candidates of an item: the best, at least and most; at random
_FEW = BEST + _DRAWN  # annotators who are all candidates
_MAX_WIDTH = 128  # candidates of a group, as some have labelled the item already
_STEPS = 32  # to which probabilities are rounded
_MAX_JUDGED = 1024  # annotators scored for every group; of more, the best for some group
_GROUPS = 32  # groups to choose these by
_TRIES = 3  # draws of candidates without one that can be taken
_SPARE = 4  # items to consider for every affordable label
_MIN_ITEMS = 2000  # items to consider in any case


@dataclass(frozen=True, eq=False)
class Constraints:
    """Budget and limits of labels to request."""

    budget: float
    cost: Floats  # (annotator)
    room: Integers  # (annotator): labels that they may still give
    per_item: int | None = None  # more labels of an item, at most
    max_labels: int | None = None
    allowed_pairs: Integers | None = None  # keys of the only pairs that can be requested
    rounds: int = 8  # in which the budget is spent where an item may get several labels


class Limits(NamedTuple):
    """The budget and limits of a plan, as they are given."""

    budget: float
    cost: float | Mapping[Any, float] | None
    limit: int | Mapping[Any, int] | None
    per_item: int | None
    batch: int | None
    annotators: Iterable[Any] | None
    available: Any

    def check(self, annotations: Annotations) -> None:
        """Refuse impossible numbers."""
        if annotations.n_classes < 2:
            raise DataError(
                f"{annotations.n_classes} classes leave nothing to decide; declare all classes"
            )
        if not (np.isfinite(self.budget) and self.budget > 0):
            raise OptionError(f"budget = {self.budget}, but it must be above 0")
        for name, value in (("per_item", self.per_item), ("batch", self.batch)):
            if value is not None and value < 1:
                raise OptionError(f"{name} = {value}, but it must be at least 1")

    def constraints(
        self, annotations: Annotations, result: ClassAggregation | None
    ) -> tuple[Annotations, ClassAggregation | None, Constraints]:
        """Return them in numbers, for annotations that declare all annotators."""
        allowed = np.ones(annotations.n_annotators, dtype=bool)
        if self.annotators is not None:
            annotations, result, allowed = with_new(annotations, result, self.annotators)
        room = amounts_of(self.limit, annotations, "limit", annotations.n_items).astype(np.int64)
        keys = None
        if self.available is not None:
            keys = keys_of(as_answers(self.available), annotations)
        constraints = Constraints(
            budget=float(self.budget),
            cost=amounts_of(self.cost, annotations, "cost", 1.0),
            room=room * allowed,
            per_item=self.per_item,
            max_labels=self.batch,
            allowed_pairs=keys,
        )
        return annotations, result, constraints


def with_new(
    annotations: Annotations, result: ClassAggregation | None, annotators: Iterable[Any]
) -> tuple[Annotations, ClassAggregation | None, npt.NDArray[np.bool_]]:
    """Return annotations that declare these annotators, and which of all may be asked."""
    names = as_names(annotators)
    if len(names) == 0:
        raise OptionError("annotators is empty; name those who may be asked")
    if (indices_of(names, annotations.annotators) < 0).any():
        all_names = union(annotations.annotators, names)
        codes = indices_of(annotations.annotators, all_names)[annotations.annotator]
        annotations = annotations.with_codes(annotator=codes, annotators=all_names)
        result = result.predict(annotations) if result is not None else None
    return annotations, result, indices_of(annotations.annotators, names) >= 0


def amounts_of(
    amount: float | Mapping[Any, float] | None, annotations: Annotations, word: str, default: float
) -> Floats:
    """Return a number for every annotator."""
    if amount is None:
        return np.full(annotations.n_annotators, float(default))
    if isinstance(amount, Mapping):
        amount_of = {text(name): float(value) for name, value in amount.items()}
        unknown = [name for name in amount_of if name not in set(annotations.annotators.tolist())]
        if unknown:
            raise DataError(
                f"a {word} for {unknown[0]!r}, who is not among the annotators "
                f"{abbreviate(annotations.annotators)}"
            )
        missing = [name for name in annotations.annotators.tolist() if name not in amount_of]
        if missing and word == "cost":
            raise DataError(f"no cost for annotator {missing[0]!r}; {len(missing)} have none")
        amounts = np.array(
            [amount_of.get(name, default) for name in annotations.annotators.tolist()], float
        )
    else:
        amounts = np.full(annotations.n_annotators, float(amount))
    least = 0 if word == "limit" else np.nextafter(0, 1)
    wrong = np.flatnonzero(~(np.isfinite(amounts) & (amounts >= least)))
    if len(wrong):
        bound = "at least" if word == "limit" else "above"
        raise OptionError(f"{word} = {amounts[wrong[0]]:g}, but it must be {bound} 0")
    return amounts


def keys_of(available: Relation, annotations: Annotations) -> Integers:
    """Return the pairs that can be requested, as keys in ascending order."""
    item: Array = indices_of(available.items, annotations.items)[available.item]
    annotator: Array = indices_of(available.annotators, annotations.annotators)[available.annotator]
    declared = (item >= 0) & (annotator >= 0)
    return np.unique(pair_keys(item[declared], annotator[declared], annotations.n_annotators))


class Pairs(NamedTuple):
    """Pairs of an item and an annotator."""

    item: Integers
    annotator: Integers

    def unknown(self, known_keys: Integers, n_annotators: int) -> Pairs:
        """Return those that are not among ascending keys, each once."""
        keys = np.sort(pair_keys(self.item, self.annotator, n_annotators))
        keys = keys[np.diff(keys, prepend=-1) > 0]
        if len(known_keys):
            position = np.minimum(np.searchsorted(known_keys, keys), len(known_keys) - 1)
            keys = keys[known_keys[position] != keys]
        return Pairs(keys // n_annotators, keys % n_annotators)


def listed_pairs(keys: Integers, free: Integers, items: Integers, n_annotators: int) -> Pairs:
    """Return the listed pairs of free annotators and these items."""
    item, annotator = keys // n_annotators, keys % n_annotators
    allowed = np.isin(annotator, free) & np.isin(item, items)
    return Pairs(item[allowed], annotator[allowed])


def random_pairs(items: Integers, free: Integers, rng: np.random.Generator) -> Pairs:
    """Return a few annotators at random for every item; all, where they are few."""
    if len(free) <= _FEW:
        return Pairs(np.repeat(items, len(free)), np.tile(free, len(items)))
    drawn = free[rng.integers(len(free), size=(len(items), _DRAWN))]
    return Pairs(np.repeat(items, _DRAWN), drawn.ravel())


def best_pairs(
    items: Integers,
    free: Integers,
    posterior: Floats,
    noise_model: NoiseModel,
    *,
    cost: Floats,
    width: int,
    rng: np.random.Generator,
) -> Pairs:
    """Return for every item the most informative annotators per cost, and a few at random."""
    if len(free) <= _FEW:
        return random_pairs(items, free, rng)
    group, mean, size = _group_items(posterior[items])
    judged = _most_informative(mean, size, free, noise_model=noise_model, cost=cost)
    gain = information_table(mean, noise_model.matrix[judged], noise_model.noise[judged])
    gain = gain / cost[judged] * (1 + 1e-6 * rng.random(gain.shape))
    width = min(len(judged), _MAX_WIDTH, width)
    best = np.argpartition(-gain, width - 1, axis=1)[:, :width]  # (group, candidate)
    few = random_pairs(items, free, rng)
    return Pairs(
        np.concatenate([np.repeat(items, width), few.item]),
        np.concatenate([judged[best[group]].ravel(), few.annotator]),
    )


def _group_items(posterior: Floats) -> tuple[Integers, Floats, Integers]:
    """Return the group of every item, its mean posterior, and its size."""
    n_items, n_classes = posterior.shape
    if n_classes < 2:
        return np.zeros(n_items, dtype=np.int64), posterior[:1], np.array([n_items])
    top = np.argsort(-posterior, axis=1, kind="stable")[:, :2]
    step = np.rint(np.take_along_axis(posterior, top, axis=1) * _STEPS).astype(np.int64)
    (first, second), (much, less) = top.T, step.T
    key = ((first * n_classes + second) * (_STEPS + 1) + much) * (_STEPS + 1) + less
    _, group, size = np.unique(key, return_inverse=True, return_counts=True)
    columns = [np.bincount(group, column) for column in posterior.T]
    return group, np.stack(columns, axis=1) / size[:, None], size


def _most_informative(
    posterior: Floats, size: Integers, free: Integers, noise_model: NoiseModel, cost: Floats
) -> Integers:
    """Return the annotators to judge: all, or of very many the best for large groups."""
    if len(free) <= _MAX_JUDGED:
        return free
    largest = np.argsort(-size, kind="stable")[:_GROUPS]
    gain = information_table(posterior[largest], noise_model.matrix[free], noise_model.noise[free])
    gain /= cost[free]
    relative = (gain / np.maximum(gain.max(axis=1, keepdims=True), 1e-300)).max(axis=0)
    return free[np.argsort(-relative, kind="stable")[:_MAX_JUDGED]]


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
    rounds = [Selection(none, none, gain=nothing, before=nothing, after=nothing)]
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
        self.room, self.unspent = constraints.room.copy(), constraints.budget
        self.n_labels = np.inf if constraints.max_labels is None else constraints.max_labels
        self.trusted = policy.trusted(state) if isinstance(policy, PairPolicy) else np.inf
        self.n_planned = np.zeros(
            len(self.room), dtype=np.int64
        )  # (annotator): labels in this plan
        self.planned = np.empty(0, dtype=np.int64)  # keys of pairs
        self.misses = 0
        cheapest = float(constraints.cost[self.room > 0].min(initial=np.inf))
        self.per_round = max(self.unspent / constraints.rounds, cheapest)
        if constraints.per_item == 1:
            self.per_round = self.unspent

    def next_round(self) -> Selection | None:
        """Return the next labels, at most one per item; `None` at the end."""
        cost = self.constraints.cost
        n_annotators = self.state.annotations.n_annotators
        while self.misses < _TRIES and self.n_labels > 0:
            able = (self.room > 0) & (cost <= self.unspent)
            if not able.any():
                break
            trusted = np.maximum(np.ceil(self.trusted) - self.n_planned, 0)
            room = np.minimum(self.room, trusted).astype(np.int64)
            free = np.flatnonzero(able & (room > 0))
            if len(free) == 0:
                self.trusted = 2 * self.trusted
                continue
            spend = min(self.per_round, self.unspent)
            if spend < cost[free].min():
                spend = self.unspent
            pairs = self._candidates(free, room, spend).unknown(self.planned, n_annotators)
            positions = _take(
                pairs, self._utility(pairs), cost, room, spend=spend, n_labels=self.n_labels
            )
            if len(positions):
                return self._request(pairs.item[positions], pairs.annotator[positions])
            if len(free) < able.sum():
                self.trusted = 2 * self.trusted
            else:
                self.misses += 1  # candidates are partly random: another draw may find some
        return None

    def _request(self, item: Integers, annotator: Integers) -> Selection:
        """Plan labels, which are pending from now on."""
        selection = Selection(
            item=item,
            annotator=annotator,
            gain=self.lookahead.information(item, annotator, self.mean),
            before=self.lookahead.accuracy(item),
            after=self.lookahead.accuracy_after(item, annotator, self.mean.matrix),
        )
        self.lookahead.request(item, annotator, self.mean.matrix)
        np.subtract.at(self.room, annotator, 1)
        np.add.at(self.n_planned, annotator, 1)
        self.unspent -= float(self.constraints.cost[annotator].sum())
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
                cost=constraints.cost,
                width=width + int((annotations.labels_per_item + pending)[items].max(initial=0)),
                rng=self.rng,
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
    pairs: Pairs, utility: Floats, cost: Floats, room: Integers, *, spend: float, n_labels: float
) -> Integers:
    """Return which pairs to take, the highest utility first, one per item.

    Whether a pair can be taken depends on all before it, hence the loop; it ends with the budget,
    or when half of the annotators have no room left: other candidates may be as good.
    """
    order = np.argsort(-utility, kind="stable")
    items, annotators = pairs.item[order].tolist(), pairs.annotator[order].tolist()
    price, space, served = cost.tolist(), room.tolist(), set[int]()
    positions, full, n_annotators = list[int](), 0, len(set(annotators))
    cheapest = float(cost[room > 0].min(initial=np.inf))
    for position, (item, annotator) in enumerate(zip(items, annotators, strict=True)):
        if item in served or price[annotator] > spend + 1e-9 or not space[annotator]:
            continue
        positions.append(position)
        served.add(item)
        space[annotator] -= 1
        spend -= price[annotator]
        full += not space[annotator]
        if len(positions) == n_labels or spend + 1e-9 < cheapest or 2 * full > n_annotators:
            break
    return order[np.array(positions, dtype=np.int64)]
