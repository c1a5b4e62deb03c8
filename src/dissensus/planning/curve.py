"""How right the labels will be for what is spent, and when to stop.

Answers are drawn as the fitted crowd gives them: truths from the posterior, confusion matrices
from their Dirichlets. The policy asks, the answers come, beliefs follow by Bayes' rule under the
mean matrices, and the share of items whose best class is the drawn truth is noted. Several such
futures give the mean and where nine in ten of them lie. Nothing is fitted anew on the way, so what
is learned about annotators meanwhile is left out. More than a thousand items are stood for by a
thousand; the interval is then wider than it had to be.

It is the fitted model that speaks, and it is too sure of itself where annotators share errors: on
23 public sets it expected 96 % of the labels to be right, in the mean, and 82 % were. Items with
known truth tell how much too sure. That is taken off the whole curve, as more labels of the same
crowd hardly mend errors that it shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .._probability import normalize
from .._relation import Floats, Integers
from ..errors import DataError
from ..simulation.strategy import pick
from ._choose import Constraints, choose
from ._posterior_state import PosteriorState, pair_keys
from .policy import Policy

__all__ = ["Curve", "Gap", "Point", "expected_curve", "gap_on", "mean_cost"]

_SAMPLE = 1000  # items in a future
_STAGES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the budget
_INSIDE = 0.9  # of the futures lie between low and high
_NINE = 1.645  # standard errors to both sides
_TINY = 1e-300


@dataclass(frozen=True)
class Point:
    """What is expected after so many more labels."""

    labels: int
    cost: float
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Gap:
    """By how much labels were expected to be right too often, on items whose truth is known."""

    n_items: int
    right: float  # share of these that are right
    mean: float
    error: float  # standard error of the mean

    @property
    def reach(self) -> float:
        """How far the gap may be from its mean, nine times in ten."""
        return _NINE * self.error


def gap_on(state: PosteriorState, gold: Integers) -> Gap:
    """Return the gap on known items, by their class or -1; nothing is learned from them."""
    known = np.flatnonzero((gold >= 0) & (state.annotations.labels_per_item > 0))
    if len(known) == 0:
        raise DataError("gold is given, but for no item that has labels")
    posterior = state.posterior[known]
    hit = _hits(posterior, gold[known])
    excess = posterior.max(axis=1) - hit
    # Of very few, or of items that are all right, the spread says too little: one more miss.
    spread = np.append(excess, 1.0).std()
    return Gap(len(known), float(hit.mean()), float(excess.mean()), spread / np.sqrt(len(known)))


@dataclass(frozen=True)
class Curve:
    """Expected accuracy against what is spent."""

    points: tuple[Point, ...]

    def __iter__(self) -> Any:
        return iter(self.points)

    def reaching(self, target: float) -> Point | None:
        """Return where the expected accuracy reaches a target, between points on a line.

        `None` where the curve ends before.
        """
        for before, after in zip((None, *self.points), self.points, strict=False):
            if after.accuracy >= target:
                if before is None:
                    return after
                way = (target - before.accuracy) / (after.accuracy - before.accuracy)
                labels = int(np.ceil(_between(before.labels, after.labels, way) - 1e-9))
                way = (labels - before.labels) / (after.labels - before.labels)
                return Point(
                    labels,
                    _between(before.cost, after.cost, way),
                    _between(before.accuracy, after.accuracy, way),
                    _between(before.low, after.low, way),
                    _between(before.high, after.high, way),
                )
        return None

    def lowered(self, gap: Gap) -> Curve:
        """Return the same without what is expected in excess of what gold shows."""

        def end(one: Point, other: float, sign: int) -> float:
            far = sign * np.hypot(other - one.accuracy, gap.reach)
            return float(np.clip(one.accuracy - gap.mean + far, 0, 1))

        return Curve(
            tuple(
                replace(
                    one,
                    accuracy=float(np.clip(one.accuracy - gap.mean, 0, 1)),
                    low=end(one, one.low, -1),
                    high=end(one, one.high, 1),
                )
                for one in self.points
            )
        )

    def as_dict(self) -> list[dict[str, Any]]:
        """Return it for JSON."""
        return [asdict(point) for point in self.points]


def expected_curve(
    state: PosteriorState,
    policy: Policy,
    constraints: Constraints,
    *,
    draws: int = 10,
    stages: Sequence[float] = _STAGES,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Curve:
    """Return the expected accuracy after shares of the budget, each bought by the policy."""
    progress = progress or (lambda _done, _total: None)
    n_seen = []
    for draw in range(draws):
        n_seen.append(
            _simulated_run(state, policy, constraints, stages, np.random.default_rng([seed, draw]))
        )
        progress(draw + 1, draws)
    labels, cost, right = np.array(n_seen).transpose(2, 1, 0)  # (stage, draw) each
    right += state.accuracy() - right[0].mean()  # the mean at the start is known
    right = np.minimum(right, 1.0)
    low, high = np.quantile(right, [(1 - _INSIDE) / 2, (1 + _INSIDE) / 2], axis=1)
    mean = np.maximum.accumulate(right.mean(axis=1))  # a label never makes it worse in the mean
    low, high = np.minimum(low, mean), np.maximum(high, mean)
    points = [
        Point(round(labels[k].mean()), float(cost[k].mean()), float(mean[k]), *map(float, ends))
        for k, ends in enumerate(zip(low, high, strict=True))
    ]
    kept = [
        after
        for before, after in zip((None, *points), points, strict=False)
        if before is None or after.labels > before.labels
    ]
    return Curve(tuple(kept))


def _simulated_run(
    state: PosteriorState,
    policy: Policy,
    constraints: Constraints,
    stages: Sequence[float],
    rng: np.random.Generator,
) -> list[tuple[float, float, float]]:
    """Return labels, cost and accuracy at the start and after every stage, of one future."""
    n_items = state.annotations.n_items
    scale = 1.0
    if n_items > _SAMPLE:
        some = np.sort(rng.choice(n_items, _SAMPLE, replace=False))
        scale = n_items / _SAMPLE
        state, constraints = state.on(some), _scaled(constraints, some, scale, state)
    truth = pick(np.array(state.posterior), rng)
    matrix = normalize(rng.standard_gamma(state.counts) + _TINY)
    label, spent = 0, 0.0
    out = [(0.0, 0.0, _right(state, truth))]
    room, budget = constraints.room.copy(), constraints.budget
    for stage in stages:
        now = replace(constraints, budget=stage * budget - spent, room=room, most=None, rounds=2)
        chosen = choose(state, policy, now, rng)
        given = pick(matrix[chosen.annotator, truth[chosen.item]], rng)
        state = _updated(state, chosen.item, chosen.annotator, given)
        np.subtract.at(room, chosen.annotator, 1)
        label += len(given)
        spent += float(constraints.cost[chosen.annotator].sum())
        out.append((scale * label, scale * spent, _right(state, truth)))
    return out


def _updated(
    state: PosteriorState, item: Integers, annotator: Integers, label: Integers
) -> PosteriorState:
    """Return what is believed once answers have come."""
    annotations = state.annotations
    log = np.log(np.maximum(state.posterior, _TINY))
    np.add.at(log, item, np.log(state.confusion[annotator, :, label]))
    log -= log.max(axis=1, keepdims=True)
    more = annotations.from_codes(
        np.concatenate([annotations.item, item]),
        np.concatenate([annotations.annotator, annotator]),
        np.concatenate([annotations.label, label]),
        items=annotations.items,
        annotators=annotations.annotators,
        classes=annotations.classes,
    )
    return replace(state, annotations=more, posterior=normalize(np.exp(log)))


def _right(state: PosteriorState, truth: Integers) -> float:
    """Return the share of items whose best class is the true one."""
    return float(_hits(state.posterior, truth).mean())


def _hits(posterior: Floats, truth: Integers) -> Floats:
    """Return how surely the best class is the true one: 1, 0, or a part where classes tie."""
    top = posterior >= posterior.max(axis=1, keepdims=True) - 1e-12
    return top[np.arange(len(truth)), truth] / top.sum(axis=1)


def _scaled(
    constraints: Constraints, some: Integers, scale: float, state: PosteriorState
) -> Constraints:
    """Return terms for some of the items that are as tight as those for all."""
    keys = constraints.allowed_pairs
    if keys is not None:
        n_annotators = state.annotations.n_annotators
        item, annotator = keys // n_annotators, keys % n_annotators
        position = np.full(state.annotations.n_items, -1)
        position[some] = np.arange(len(some))
        kept = position[item] >= 0
        keys = np.sort(pair_keys(position[item[kept]], annotator[kept], n_annotators))
    room = np.ceil(constraints.room / scale).astype(np.int64)
    return replace(constraints, budget=constraints.budget / scale, room=room, allowed_pairs=keys)


def _between(one: float, other: float, way: float) -> float:
    return float(one + way * (other - one))


def mean_cost(cost: Floats, room: Integers) -> float:
    """Return what a label costs in the mean, of those who can still be asked."""
    free = cost[room > 0]
    return float(free.mean()) if len(free) else 1.0
