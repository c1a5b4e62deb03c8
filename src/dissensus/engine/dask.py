"""A Dask cluster: shards stay with the workers, parameters go out and counts come in once a round.

Counts are added in a tree, the last few here. The scheduler has shards and counts made again that
were lost with a worker; where the parameters are lost as well, the round is begun anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from copy import deepcopy
from dataclasses import replace
from operator import itemgetter
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from ._addition import add
from .local import Local

if TYPE_CHECKING:
    from distributed import Client, Future

    from ..annotations import Annotations

__all__ = ["Dask"]

Result = TypeVar("Result")
_FEW = 4  # results that one task adds up
_TRIES, _PAUSE = 5, 0.5  # of a round that lost its parameters; seconds between


class Dask:
    """The workers of a Dask cluster.

    Parameters
    ----------
    client
        A `distributed.Client`.
    direct
        Whether workers can be reached from here without the scheduler between, which is faster.
    """

    def __init__(self, client: Client, *, direct: bool = False) -> None:
        self.client, self.how = client, {"direct": direct, "hash": False}
        self._held: WeakKeyDictionary[Any, Future] = WeakKeyDictionary()

    @property
    def cores(self) -> int:
        """How many threads all workers have together."""
        return max(sum(self.client.nthreads().values()), 1)

    def cut(self, annotations: Annotations) -> list[tuple[int, int]]:
        """Return ranges of items, as many as there are threads, or more where they are long."""
        return Local(threads=self.cores).cut(annotations)

    def each(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Iterator[Result]:
        """Yield what the work makes of every part, in the order of the parts."""
        yield from (future.result() for future in self._results(work, parts))

    def add_up(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Result:
        """Return what the work makes of every part, added up in a tree."""
        for _ in range(_TRIES):
            try:
                level = self._round(work, [self._at(part) for part in parts])
                while len(level) > _FEW:
                    groups = [level[at : at + _FEW] for at in range(0, len(level), _FEW)]
                    level = [self.submit(_sum, group) for group in groups]
                return _sum(self.client.gather(level, direct=self.how["direct"]))
            except (CancelledError, OSError) as problem:
                lost = problem
                sleep(_PAUSE)
        raise lost

    def _round(self, work: Callable[[Any], Any], held: Sequence[Any]) -> list[Future]:
        """Return what will be made of parts, with a copy of the work for some that hold them."""
        if not all(hasattr(one, "key") for one in held):
            return self._results(work, held)
        where: Any = self.client.who_has(held)
        homes = sorted({at[0] for at in where.values() if at})[:_FEW] or None
        sent = self.client.scatter([work] * len(homes or "1"), workers=homes, **self.how)
        copies = {at: one for one in sent for at in self.client.who_has(one)[one.key]}
        there = [(one, where.get(one.key, ())) for one in held]
        near = [next((copies[at] for at in ats if at in copies), sent[0]) for _, ats in there]
        pairs = zip(near, there, strict=True)
        return [self.submit(_apply, copy, one, workers=ats) for copy, (one, ats) in pairs]

    def exchange(
        self,
        split: Callable[[Any], Sequence[Any]],
        chunks: Sequence[Any],
        n_shards: int,
        join: Callable[[Sequence[Any]], Any],
        progress: Callable[[int], None],
    ) -> list[Future]:
        """Return the shards that pieces of all chunks make; they stay where they are made."""
        from distributed import wait

        pieces = self._results(split, chunks)
        how = self.submit(_same, join)
        shards = []
        for position in range(n_shards):
            mine = [self.submit(itemgetter(position), one) for one in pieces]
            shards.append(self.submit(_apply, how, mine, turn=position))
        for done, one in enumerate(pieces, 1):
            wait(one)
            progress(done)
        return shards

    def position(self, shards: Sequence[Future], starts: Sequence[int]) -> list[Future]:
        """Return the shards, each with the number of items before it."""
        return [self.submit(_moved, *both) for both in zip(shards, starts, strict=True)]

    def _results(self, work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Future]:
        sent = self.submit(_same, work)
        return [self.submit(_apply, sent, self._at(part)) for part in parts]

    def _at(self, part: Any) -> Any:
        """Return a part that is held by a worker; what is not a part is sent as it is."""
        from ..annotations import Part

        if not isinstance(part, Part):
            return part
        if part not in self._held:
            self._held[part] = self.submit(_same, part, turn=len(self._held))
        return self._held[part]

    def submit(self, work: Any, *given: Any, turn: int | None = None, workers: Any = ()) -> Future:
        """Return what will be; at workers by name, or in turn, if they are there."""
        if turn is not None and (there := sorted(self.client.nthreads())):
            workers = [there[turn % len(there)]]
        told = {"workers": list(workers), "allow_other_workers": True} if workers else {}
        return self.client.submit(work, *given, pure=False, retries=2, **told)


def _same(value: Any) -> Any:
    return value


def _apply(work: Callable[[Any], Any], part: Any) -> Any:
    return work(part)


def _moved(shard: Any, start: int) -> Any:
    return replace(shard, start=start, stop=start + shard.stop - shard.start)


def _sum(results: list[Result]) -> Result:
    return add([deepcopy(results[0]), *results[1:]])  # adding writes into the first
