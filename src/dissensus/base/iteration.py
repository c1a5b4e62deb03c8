"""Fixed-point iteration: the one loop of all iterative methods.

A method provides the first state, the update from one state to the next, and a test of
convergence. The loop owns the trace, the number of iterations, progress and checkpoints.

Within an update, Newton steps improve many independent parameters, or small groups of them, at
once. The log-likelihood of annotations is a sum over annotators or items, so the parameters of each
take a step of their own, and only those whose step would lower it have to try a shorter one. In a
logistic model, parameters change the log-odds x of annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from .arrays import Floats, Integers

_LONGEST = 2.0  # the longest step
_HALVINGS = 30
_SLACK = 1e-12  # relative losses below this are rounding errors


class _HasObjective(Protocol):
    @property
    def objective(self) -> float: ...


State = TypeVar("State", bound=_HasObjective)


class Iterations(NamedTuple, Generic[State]):
    """The last state, and how it was reached."""

    state: State
    trace: tuple[float, ...]  # the objective after every iteration
    converged: bool


def iterate(
    state: State,
    advance: Callable[[State], State],
    has_converged: Callable[[list[float], State, State], bool],
    max_iter: int,
    progress: Callable[[int, float], None],
    *,
    trace: Sequence[float] = (),
    converged: bool = False,
    checkpoint: Callable[[Iterations[State]], None] | None = None,
) -> Iterations[State]:
    """Advance the state until it has converged, given the trace, this state and the last.

    The objective of the first state is not used. `trace` and `converged` resume an interrupted
    loop; `checkpoint` is called after every iteration with what is needed to resume.
    """
    objectives = list(trace)
    while not converged and len(objectives) < max_iter:
        last = state  # frees the state before that one
        state = advance(last)
        objectives.append(state.objective)
        progress(len(objectives), state.objective)
        converged = has_converged(objectives, state, last)
        if checkpoint is not None:
            checkpoint(Iterations(state, tuple(objectives), converged))
    return Iterations(state, tuple(objectives), converged)


def relative_change_below(values: list[float], tol: float) -> bool:
    """Return whether the last two values differ by at most this fraction.

    >>> relative_change_below([7.0, 100.0, 101.0], 0.1), relative_change_below([-1.0, -0.5], 0.1)
    (True, False)
    >>> relative_change_below([1.0], 0.1)
    False
    """
    return len(values) > 1 and abs(values[-1] - values[-2]) <= tol * max(1.0, abs(values[-1]))


def objective_settles(tol: float) -> Callable[[list[float], Any, Any], bool]:
    """Return the test of convergence that looks at nothing but the objective's relative change."""
    return lambda trace, _state, _last: relative_change_below(trace, tol)


class Derivatives(NamedTuple):
    """An expected log-likelihood, its gradient and its curvature (minus the second derivative).

    The axis of parameters within a group is left out where every group has one.
    """

    value: Floats  # (group)
    gradient: Floats  # (group, parameter)
    curvature: Floats  # (group, parameter, parameter)


def derivatives(
    x: Floats, rate: Floats, right: Floats, group: Integers, size: int, full: bool = True
) -> Derivatives:
    """Return the derivatives by parameters that change the log-odds x of annotations at a rate.

    `right` is the posterior probability that an annotation is right, `group` the parameter of
    every annotation. Unless `full`, only values are computed.
    """

    def by_group(value: Floats) -> Floats:
        return np.bincount(group, value, size).astype(float, copy=False)

    probability, log_sum = logistic(x)
    value = by_group(right * x - log_sum)
    if not full:
        return Derivatives(value, np.zeros(1), np.zeros(1))
    gradient = by_group((right - probability) * rate)
    return Derivatives(value, gradient, by_group(probability * (1 - probability) * rate**2))


def add_normal_prior(
    likelihood: Derivatives, deviation: Floats, precision: float = 1.0
) -> Derivatives:
    """Return derivatives with those of a normal prior of the deviation from its mean added."""
    value, gradient, curvature = likelihood
    in_groups = deviation.ndim == 2
    square = (deviation**2).sum(axis=1) if in_groups else deviation**2
    diagonal: Floats = np.eye(deviation.shape[1]) if in_groups else np.ones(1)
    return Derivatives(
        value - 0.5 * precision * square,
        gradient - precision * deviation,
        curvature + precision * diagonal,
    )


def newton_step(
    start: Floats, evaluate: Callable[[Floats, bool], Derivatives]
) -> tuple[Floats, Floats]:
    """Return better parameters and their values: one step of each, halved until it gains."""
    current = evaluate(start, True)
    step: Floats = (
        current.gradient / current.curvature
        if current.curvature.ndim == 1
        else np.linalg.solve(current.curvature, current.gradient[:, :, None])[:, :, 0].astype(float)
    )
    step = np.clip(step, -_LONGEST, _LONGEST)
    least = current.value - _SLACK * np.abs(current.value)
    for _ in range(_HALVINGS):
        value = evaluate(start + step, False).value
        worse = value < least
        if not worse.any():
            return start + step, value
        step[worse] /= 2
    step[worse] = 0
    return start + step, np.where(worse, current.value, value)


def logistic(x: Floats) -> tuple[Floats, Floats]:
    """Return sigmoid(x) and log(1 + exp(x)), for any x."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1 + small), np.maximum(x, 0) + np.log1p(small)
