"""A Dask cluster: shards stay with the workers, parameters go out and counts come in once a round.

Counts are added in a tree. Whatever is sent is a task, too, so the scheduler can have anything made
again that was lost with a worker: shards from their source, counts from shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from ._sums import add
from .local import Local

if TYPE_CHECKING:
    from distributed import Client, Future

    from ..annotations import Annotations
    from ..io.chunks import Chunks

__all__ = ["Dask"]

Result = TypeVar("Result")
_FEW = 4  # results that one task adds up


class Dask:
    """The workers of a Dask cluster.

    Parameters
    ----------
    client
        A `distributed.Client`.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self._held: WeakKeyDictionary[Any, Future] = WeakKeyDictionary()

    @property
    def cores(self) -> int:
        """How many threads all workers have together."""
        return max(sum(self.client.nthreads().values()), 1)

    def cut(self, said: Annotations) -> list[tuple[int, int]]:
        """Return ranges of items, as many as there are threads, or more where they are long."""
        return Local(threads=self.cores).cut(said)

    def each(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Iterator[Result]:
        """Yield what the work makes of every part, in the order of the parts."""
        for future in self._results(work, parts):
            yield future.result()

    def add_up(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Result:
        """Return what the work makes of every part, added up in a tree."""
        level = self._results(work, parts)
        while len(level) > 1:
            groups = [level[start : start + _FEW] for start in range(0, len(level), _FEW)]
            level = [self._submit(_sum, group) for group in groups]
        return deepcopy(level[0].result())  # what was received may not be written to

    def exchange(
        self,
        split: Callable[[Any], Sequence[Any]],
        chunks: Sequence[Any],
        n_shards: int,
        join: Callable[[Sequence[Any]], Any],
        tell: Callable[[int], None],
    ) -> list[Future]:
        """Return the shards that pieces of all chunks make; they stay where they are made."""
        from distributed import wait

        pieces = self._results(split, chunks)
        how = self._submit(_same, join)
        shards = []
        for place in range(n_shards):
            mine = [self._submit(itemgetter(place), one) for one in pieces]
            shards.append(self._submit(_apply, how, mine, turn=place))
        for done, one in enumerate(pieces, 1):
            wait(one)
            tell(done)
        return shards

    def place(self, shards: Sequence[Future], starts: Sequence[int]) -> list[Future]:
        """Return the shards, each with the number of items before it."""
        return [
            self._submit(_moved, shard, start) for shard, start in zip(shards, starts, strict=True)
        ]

    def chunks(
        self, table: Any, columns: Mapping[str, str] | None = None, missing: str = "error"
    ) -> Chunks:
        """Return the rows of a Dask dataframe, in the chunks that it has."""
        from ..io.chunks import Chunks, Table, columns_of

        told = columns_of({name: str(kind) for name, kind in table.dtypes.items()}, columns)
        parts = self.client.compute(table.to_delayed())
        made = [self._submit(Table, one, told, missing) for one in parts]
        return Chunks(tuple(made), 0, ("dataframe",), {role: whole for role, _, whole in told})

    def _results(self, work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Future]:
        sent = self._submit(_same, work)
        return [self._submit(_apply, sent, self._at(part)) for part in parts]

    def _at(self, part: Any) -> Any:
        """Return a part that is held by a worker; what is not a part is sent as it is."""
        from distributed import Future

        from ..annotations import Part

        if isinstance(part, Future) or not isinstance(part, Part):
            return part
        if part not in self._held:
            self._held[part] = self._submit(_same, part, turn=len(self._held))
        return self._held[part]

    def _submit(self, work: Callable[..., Any], *given: Any, turn: int | None = None) -> Future:
        """Return what will be; what is to stay goes to the workers in turn, if they are there."""
        told: dict[str, Any] = {"pure": False, "retries": 2}
        if turn is not None and (workers := sorted(self.client.nthreads())):
            told |= {"workers": [workers[turn % len(workers)]], "allow_other_workers": True}
        return self.client.submit(work, *given, **told)


def _same(value: Any) -> Any:
    return value


def _apply(work: Callable[[Any], Any], part: Any) -> Any:
    return work(part)


def _moved(shard: Any, start: int) -> Any:
    return replace(shard, start=start, stop=start + shard.stop - shard.start)


def _sum(results: list[Any]) -> Any:
    return add([deepcopy(results[0]), *results[1:]])  # adding writes into the first
