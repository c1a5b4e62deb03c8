"""Engines: where the parts of the data are processed.

A method describes work on one part of the items; an engine runs it over all of them and adds up
the results. Anything that fulfils the `Engine` protocol can run every additive method. A part is a
`Part`, or what the engine has instead: a file, or something on another machine.

On one machine parts go to threads, for SciPy's sparse products release the global interpreter
lock; linear algebra gets one thread where matrices are small.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from ..answers.base import Relation


__all__ = ["Engine", "Local", "add"]


Result = TypeVar("Result")
Split = Callable[[Any], Sequence[Any]]  # a chunk of rows → its piece for every shard
Join = Callable[[Sequence[Any]], Any]  # the pieces of a shard → the shard
Count = Callable[[int], None]  # called with the number of chunks that are done

# With fewer annotations a second thread costs as much as it saves.
_SMALL = 150_000
# More annotations in one part cost memory and save no time.
_LARGE = 8_000_000


class Engine(Protocol):
    """Something that runs work over parts of the items."""

    def cut(self, annotations: Relation) -> list[tuple[int, int]]:
        """Return the ranges of items to work on, one after the other."""
        ...

    def each(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Iterable[Result]:
        """Yield the result of the work for every part, in the order of the parts."""
        ...

    def add_up(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Result:
        """Return the results of the work for all parts, added up field by field."""
        ...


@dataclass(frozen=True)
class Local:
    """Threads of this process.

    Parameters
    ----------
    threads
        How many; all cores if not given.
    parts
        Into how many ranges the items are cut; one or two per thread, unless given.
    """

    threads: int | None = None
    parts: int | None = None

    def cut(self, annotations: Relation) -> list[tuple[int, int]]:
        """Return ranges of items with about equally many annotations."""
        n_parts = self.parts or 1
        if self.parts is None and len(annotations) >= _SMALL:
            n_parts = self.cores * -(-len(annotations) // (_LARGE * self.cores))
        cuts = np.linspace(0, len(annotations), n_parts + 1)[1:-1]
        bounds = [0, *np.searchsorted(annotations.index, cuts).tolist(), annotations.n_items]
        return [(a, b) for a, b in pairwise(bounds) if a < b]

    def each(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Iterator[Result]:
        """Yield the result of the work for every part, in the order of the parts.

        No more parts are started ahead than there are threads, so results do not pile up.
        """
        if len(parts) <= 1 or self.cores == 1:
            yield from map(work, parts)
            return
        threads = min(self.cores, len(parts))
        pool, started = _pool(threads), deque[Future[Result]]()
        try:
            for part in parts:
                started.append(pool.submit(work, part))
                if len(started) > threads:
                    yield started.popleft().result()
            while started:
                yield started.popleft().result()
        finally:
            for future in started:
                future.cancel()

    def add_up(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Result:
        """Return the results of the work for all parts, added up field by field."""
        return reduce(add, self.each(work, parts))

    @property
    def cores(self) -> int:
        """How many threads there are to work with."""
        if self.threads:
            return self.threads
        if hasattr(os, "sched_getaffinity"):  # the process may be limited to some of them
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1


@lru_cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return a pool that is kept: starting threads would cost more than a small iteration."""
    return ThreadPoolExecutor(threads, thread_name_prefix="dissensus")


def add(total: Any, addend: Any) -> Any:
    """Add numbers, arrays or tuples of them, field by field; arrays in `total` are overwritten.

    >>> add((1, np.ones(2)), (2, np.ones(2)))
    (3, array([2., 2.]))
    """
    if isinstance(total, tuple):
        fields = [add(part, added) for part, added in zip(total, addend, strict=True)]
        return type(total)._make(fields) if hasattr(total, "_make") else tuple(fields)
    if isinstance(total, np.ndarray):
        total += addend
        return total
    return total + addend


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which NumPy and SciPy multiply matrices on one thread.

    Threads of BLAS spin while they wait: fits of small matrices take up to thirty times the CPU
    time with two threads on a busy machine. Without threadpoolctl nothing changes.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    return threadpool_limits(1, "blas")
