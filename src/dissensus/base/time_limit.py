"""A limit of time for everything that learns: whoever searches or trains asks whether it is over.

with time_limit(60) as limit:
    estimator.fit(X, annotations)  # ends with the best found
limit.reached
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic

clock = monotonic


@dataclass
class TimeLimit:
    """Start and end of some work, and whether something was left out because of the end."""

    start: float
    end: float
    reached: bool = False

    @property
    def seconds(self) -> float:
        """How long the work has taken until now."""
        return clock() - self.start


_current: ContextVar[TimeLimit | None] = ContextVar("time_limit", default=None)


@contextmanager
def time_limit(seconds: float) -> Iterator[TimeLimit]:
    """Let what learns in this context stop after some seconds, with the best found."""
    now = clock()
    limit = TimeLimit(now, now + seconds)
    token = _current.set(limit)
    try:
        yield limit
    finally:
        _current.reset(token)


@contextmanager
def share_of_time(share: float) -> Iterator[None]:
    """Give the work in this context a share of the time that is left, if there is a limit."""
    outer = _current.get()
    if outer is None:
        yield
        return
    with time_limit(share * max(outer.end - clock(), 0.0)) as inner:
        try:
            yield
        finally:
            outer.reached |= inner.reached


def out_of_time() -> bool:
    """Return whether the limit is reached; whoever asks then leaves the rest out.

    >>> with time_limit(0):
    ...     out_of_time()
    True
    """
    limit = _current.get()
    if limit is None or clock() < limit.end:
        return False
    limit.reached = True
    return True
