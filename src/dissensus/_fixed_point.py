"""Rounds: the one loop of all methods that come to know things little by little.

A method says where it begins, what one round makes of the last, and when that is near enough.
The loop owns the trace, the number of rounds, progress and whether the end was reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

__all__ = ["Ended", "rounds", "still"]


class _Reached(Protocol):
    @property
    def objective(self) -> float: ...


State = TypeVar("State", bound=_Reached)


class Ended(NamedTuple, Generic[State]):
    """Where the rounds ended."""

    last: State
    trace: tuple[float, ...]  # the objective after every round
    converged: bool


def rounds(
    first: State,
    advance: Callable[[State], State],
    settled: Callable[[list[float], State, State], bool],
    most: int,
    progress: Callable[[int, float], None],
    *,
    begun: Sequence[float] = (),
    converged: bool = False,
    keep: Callable[[Ended[State]], None] | None = None,
) -> Ended[State]:
    """Advance until it is settled, given the trace, where we are and where we were before.

    The objective of `first` is not looked at. Rounds that were begun earlier are taken up again
    with their trace; `keep` is told of every round what it needs for that.
    """
    now, trace = first, list(begun)
    while not converged and len(trace) < most:
        before = now  # lets go of the one before that, while the next is made
        now = advance(before)
        trace.append(now.objective)
        progress(len(trace), trace[-1])
        converged = settled(trace, now, before)
        if keep is not None:
            keep(Ended(now, tuple(trace), converged))
    return Ended(now, tuple(trace), converged)


def still(values: list[float], tol: float) -> bool:
    """Return whether the last of the values is that before it, but for this share of it.

    >>> still([1.0], 0.1), still([7.0, 100.0, 101.0], 0.1), still([-1.0, -0.5], 0.1)
    (False, True, False)
    """
    return len(values) > 1 and abs(values[-1] - values[-2]) <= tol * max(1.0, abs(values[-1]))
