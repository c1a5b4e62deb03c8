"""Fixed-point iteration: the one loop of all iterative methods.

A method provides the first state, the update from one state to the next, and a test of
convergence. The loop owns the trace, the number of iterations, progress and checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar


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
