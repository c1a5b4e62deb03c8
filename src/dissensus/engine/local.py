"""Threads of one machine: SciPy's sparse products release the interpreter's lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ._addition import add

if TYPE_CHECKING:
    from ..annotations import Annotations

__all__ = ["Local"]

Result = TypeVar("Result")

# Below this many annotations a second thread costs as much as it saves.
_SMALL = 150_000
# More annotations than this in one part cost memory and win no time.
_LARGE = 8_000_000


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

    def cut(self, annotations: Annotations) -> list[tuple[int, int]]:
        """Return ranges of items with about equally many annotations."""
        wanted = self.parts or self._parts(len(annotations))
        shares = np.linspace(0, len(annotations), wanted + 1)[1:-1]
        bounds = [0, *np.searchsorted(annotations.index, shares).tolist(), annotations.n_items]
        return [(a, b) for a, b in pairwise(bounds) if a < b]

    def each(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Iterator[Result]:
        """Yield what the work makes of every part, in the order of the parts.

        No more parts are begun ahead than there are threads, so results do not pile up.
        """
        threads = min(self.cores, len(parts))
        if threads <= 1:
            yield from map(work, parts)
            return
        pool, begun = _pool(threads), deque[Future[Result]]()
        try:
            for part in parts:
                begun.append(pool.submit(work, part))
                if len(begun) > threads:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            for future in begun:
                future.cancel()

    def add_up(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Result:
        """Return what the work makes of every part, added up field by field."""
        return add(self.each(work, parts))

    @property
    def cores(self) -> int:
        """How many threads there are to work with."""
        return self.threads or _cores()

    def _parts(self, annotations: int) -> int:
        if annotations < _SMALL:
            return 1
        rounds = -(-annotations // (_LARGE * self.cores))
        return self.cores * rounds


@lru_cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Return threads that are kept: starting them anew would cost more than a small round."""
    return ThreadPoolExecutor(threads, thread_name_prefix="dissensus")


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # where a process may be held to fewer than there are
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
