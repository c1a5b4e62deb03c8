"""Expected accuracy against cost, by simulating the fitted model.

Truths are drawn from the posterior and confusion matrices from their Dirichlets. The policy
requests labels, answers are drawn, posteriors are updated by Bayes' rule under the mean matrices,
and the share of items whose best class is the drawn truth is recorded. Several such runs give the
mean and a 90 % prediction interval. Nothing is refitted on the way, so learning about annotators is
left out. Above a thousand items, a sample is simulated, and the interval is too wide.

The fitted model is overconfident where annotators share errors, so the curve starts at the accuracy
that `label_errors` expects now, and its band includes that uncertainty: more labels of the same
annotators hardly correct errors that they share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any

import numpy as np

from ..base.arrays import Floats, Integers
from ..base.probability import normalize, pick
from .choosing import Constraints, choose
from .information import PosteriorState, pair_keys
from .label_errors import LabelErrors
from .policies import Policy

_SAMPLE = 1000  # items in a run
_STAGES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the budget
_COVERAGE = 0.9  # of prediction intervals
_TINY = 1e-300


@dataclass(frozen=True)
class Point:
    """Expected accuracy after some more labels, with a 90 % prediction interval."""

    labels: int
    cost: float
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    """Expected accuracy against cost."""

    points: tuple[Point, ...]

    def __iter__(self) -> Any:
        return iter(self.points)

    def reaching(self, target: float) -> Point | None:
        """Return where the expected accuracy reaches a target, by linear interpolation.

        `None` where the curve ends before.
        """
        columns = np.array([astuple(point) for point in self.points]).T  # labels, cost, …
        labels, accuracy = columns[0], columns[2]
        reached = np.flatnonzero(accuracy >= target)
        if len(reached) == 0:
            return None
        last = reached[0]
        if last == 0:
            return self.points[0]
        ends = slice(last - 1, last + 1)
        n_labels = int(np.ceil(np.interp(target, accuracy[ends], labels[ends]) - 1e-9))
        values = [float(np.interp(n_labels, labels[ends], column[ends])) for column in columns[1:]]
        return Point(n_labels, *values)

    def anchored(self, errors: LabelErrors) -> Curve:
        """Return the curve from the accuracy that is expected now, with its uncertainty."""
        expected, least, most = errors.accuracy
        shift = expected - self.points[0].accuracy
        points = []
        for point in self.points:
            below, above = np.hypot(
                [point.accuracy - point.low, point.high - point.accuracy],
                [expected - least, most - expected],
            )
            value = min(point.accuracy + shift, 1.0)
            low, high = max(value - float(below), 0.0), min(value + float(above), 1.0)
            points.append(replace(point, accuracy=value, low=low, high=high))
        return Curve(tuple(points))

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
    """Return the expected accuracy after shares of the budget, spent by the policy."""
    progress = progress or (lambda _step, _total: None)
    runs = []
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        runs.append(_simulated_run(state, policy, constraints, stages=stages, rng=rng))
        progress(draw + 1, draws)
    labels, cost, right = np.array(runs).transpose(2, 1, 0)  # (stage, draw) each
    right += state.accuracy() - right[0].mean()  # the mean at the start is known
    right = np.minimum(right, 1.0)
    low, high = np.quantile(right, [(1 - _COVERAGE) / 2, (1 + _COVERAGE) / 2], axis=1)
    mean = np.maximum.accumulate(right.mean(axis=1))  # labels never reduce it on average
    low, high = np.minimum(low, mean), np.maximum(high, mean)
    count, price = labels.mean(axis=1).round().astype(int), cost.mean(axis=1)
    new = np.diff(count, prepend=-1) > 0
    rows = zip(*(values[new].tolist() for values in (count, price, mean, low, high)), strict=True)
    return Curve(tuple(Point(*row) for row in rows))


def _simulated_run(
    state: PosteriorState,
    policy: Policy,
    constraints: Constraints,
    stages: Sequence[float],
    rng: np.random.Generator,
) -> list[tuple[float, float, float]]:
    """Return labels, cost and accuracy at the start and after every stage of one run."""
    n_items = state.annotations.n_items
    scale = 1.0
    if n_items > _SAMPLE:
        sample = np.sort(rng.choice(n_items, _SAMPLE, replace=False))
        scale = n_items / _SAMPLE
        state, constraints = state.take(sample), _scaled(constraints, sample, scale, state)
    truth = pick(np.array(state.posterior), rng)
    matrix = normalize(rng.standard_gamma(state.counts) + _TINY)
    label, spent = 0, 0.0
    out = [(0.0, 0.0, float(_hits(state.posterior, truth).mean()))]
    room, budget = constraints.room.copy(), constraints.budget
    for stage in stages:
        stage_constraints = replace(
            constraints, budget=stage * budget - spent, room=room, max_labels=None, rounds=2
        )
        selection = choose(state, policy, stage_constraints, rng)
        answers = pick(matrix[selection.annotator, truth[selection.item]], rng)
        state = _updated(state, selection.item, selection.annotator, answers)
        np.subtract.at(room, selection.annotator, 1)
        label += len(answers)
        spent += float(constraints.cost[selection.annotator].sum())
        out.append((scale * label, scale * spent, float(_hits(state.posterior, truth).mean())))
    return out


def _updated(
    state: PosteriorState, item: Integers, annotator: Integers, label: Integers
) -> PosteriorState:
    """Return the state after answers."""
    annotations = state.annotations
    log = np.log(np.maximum(state.posterior, _TINY))
    np.add.at(log, item, np.log(state.confusion[annotator, :, label]))
    log -= log.max(axis=1, keepdims=True)
    extended = annotations.with_codes(
        item=np.concatenate([annotations.item, item]),
        annotator=np.concatenate([annotations.annotator, annotator]),
        label=np.concatenate([annotations.label, label]),
    )
    return replace(state, annotations=extended, posterior=normalize(np.exp(log)))


def _hits(posterior: Floats, truth: Integers) -> Floats:
    """Return 1 where the best class is the true one, or a fraction where classes tie."""
    top = posterior >= posterior.max(axis=1, keepdims=True) - 1e-12
    return top[np.arange(len(truth)), truth] / top.sum(axis=1)


def _scaled(
    constraints: Constraints, sample: Integers, scale: float, state: PosteriorState
) -> Constraints:
    """Return constraints for a sample of the items, as tight as those for all."""
    keys = constraints.allowed_pairs
    if keys is not None:
        n_annotators = state.annotations.n_annotators
        item, annotator = keys // n_annotators, keys % n_annotators
        in_sample = np.isin(item, sample)
        position = np.searchsorted(sample, item[in_sample])
        keys = np.sort(pair_keys(position, annotator[in_sample], n_annotators))
    room = np.ceil(constraints.room / scale).astype(np.int64)
    return replace(constraints, budget=constraints.budget / scale, room=room, allowed_pairs=keys)
