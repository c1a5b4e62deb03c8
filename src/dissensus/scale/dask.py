"""A Dask cluster, a running one or one of this machine's cores.

Shards stay with the workers, parameters go out and counts come in once a round. Counts are added in
a tree, the last few here. The scheduler recomputes shards and counts that were lost with a worker;
if the parameters are lost as well, the round is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import reduce
from operator import itemgetter
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from ..base.engine import Count, Join, Local, Split, add
from ..errors import OptionError, install_command

if TYPE_CHECKING:
    from distributed import Client, Future

    from ..answers.base import Relation
    from .parquet_files import Chunks


Result = TypeVar("Result")
_FEW = 4  # results that one task adds up
_TRIES, _PAUSE = 5, 0.5  # attempts at a round that lost its parameters; seconds between
# By default Dask returns memory after every array and allocates it again in the next round, which
# takes a third of the time. Here the same arrays recur every round.
_SETTINGS = {
    "distributed.admin.large-graph-warning-threshold": "1TB",
    "distributed.scheduler.allowed-failures": 10,
    "distributed.nanny.pre-spawn-environ": {
        f"{library}_NUM_THREADS": 1 for library in ("OMP", "MKL", "OPENBLAS")
    },
}


class Dask:
    """The workers of a Dask cluster.

    Parameters
    ----------
    client
        A `distributed.Client`.
    direct
        Whether this process can reach the workers directly, which is faster.
    """

    def __init__(self, client: Client, *, direct: bool = False) -> None:
        self.client, self.options = client, {"direct": direct, "hash": False}
        self._held: WeakKeyDictionary[Any, Future] = WeakKeyDictionary()

    @property
    def cores(self) -> int:
        """How many threads all workers have together."""
        return max(sum(self.client.nthreads().values()), 1)

    def cut(self, annotations: Relation) -> list[tuple[int, int]]:
        """Return ranges of items, as many as there are threads, or more where they are long."""
        return Local(threads=self.cores).cut(annotations)

    def each(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Iterator[Result]:
        """Yield the result of the work for every part, in the order of the parts."""
        yield from (future.result() for future in self._results(work, parts))

    def add_up(self, work: Callable[[Any], Result], parts: Sequence[Any]) -> Result:
        """Return the results of the work for all parts, added up in a tree."""
        for _ in range(_TRIES):
            try:
                level = self._round(work, [self._held_part(part) for part in parts])
                while len(level) > _FEW:
                    groups = [level[start : start + _FEW] for start in range(0, len(level), _FEW)]
                    level = [self.submit(_sum, group) for group in groups]
                return _sum(self.client.gather(level, direct=self.options["direct"]))
            except (CancelledError, OSError) as problem:
                lost = problem
                sleep(_PAUSE)
        raise lost

    def _round(self, work: Callable[[Any], Any], held: Sequence[Any]) -> list[Future]:
        """Return futures of the results, with copies of the work at some workers."""
        if not all(hasattr(part, "key") for part in held):
            return self._results(work, held)
        holders: Any = self.client.who_has(held)
        homes = sorted({workers[0] for workers in holders.values() if workers})[:_FEW] or None
        sent = self.client.scatter([work] * len(homes or "1"), workers=homes, **self.options)
        copies = {
            worker: future for future in sent for worker in self.client.who_has(future)[future.key]
        }
        futures = []
        for part in held:
            workers = holders.get(part.key, ())
            near = next((copies[worker] for worker in workers if worker in copies), sent[0])
            futures.append(self.submit(_apply, near, part, workers=workers))
        return futures

    def exchange(
        self, split: Split, chunks: Sequence[Any], n_shards: int, join: Join, progress: Count
    ) -> list[Future]:
        """Return futures of the shards joined from pieces of all chunks."""
        from distributed import wait

        pieces = self._results(split, chunks)
        joining = self.submit(_same, join)
        shards = []
        for position in range(n_shards):
            of_shard = [self.submit(itemgetter(position), piece) for piece in pieces]
            shards.append(self.submit(_apply, joining, of_shard, turn=position))
        for n_done, piece in enumerate(pieces, 1):
            wait(piece)
            progress(n_done)
        return shards

    def number(self, shards: Sequence[Future], starts: Sequence[int]) -> list[Future]:
        """Return the shards, each with the number of items before it."""
        pairs = zip(shards, starts, strict=True)
        return [self.submit(_numbered, shard, start) for shard, start in pairs]

    def _results(self, work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Future]:
        sent = self.submit(_same, work)
        return [self.submit(_apply, sent, self._held_part(part)) for part in parts]

    def _held_part(self, part: Any) -> Any:
        """Return the future of a part that a worker holds; anything else is sent as it is."""
        from ..answers.annotations import Part

        if not isinstance(part, Part):
            return part
        if part not in self._held:
            self._held[part] = self.submit(_same, part, turn=len(self._held))
        return self._held[part]

    def submit(
        self, work: Any, *arguments: Any, turn: int | None = None, workers: Any = ()
    ) -> Future:
        """Return the future of some work, at workers by name or in turn if they are available."""
        if turn is not None and (names := sorted(self.client.nthreads())):
            workers = [names[turn % len(names)]]
        options = {"workers": list(workers), "allow_other_workers": True} if workers else {}
        return self.client.submit(work, *arguments, pure=False, retries=2, **options)


def _same(value: Any) -> Any:
    return value


def _apply(work: Callable[[Any], Any], part: Any) -> Any:
    return work(part)


def _numbered(shard: Any, start: int) -> Any:
    return replace(shard, start=start, stop=start + shard.stop - shard.start)


def _sum(results: list[Result]) -> Result:
    return reduce(add, results[1:], deepcopy(results[0]))  # adding writes into the first


@contextmanager
def joined(address: str | None = None, workers: int | None = None) -> Iterator[Dask]:
    """Yield the cluster at an address, or a temporary one of this machine's cores."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        remedy = f"needs Dask: {install_command('dask')}"
        raise OptionError(remedy=remedy, engine="dask") from None
    with dask.config.set(_SETTINGS):
        if address is not None:
            try:
                client = Client(address, timeout=20)
            except (OSError, ValueError) as problem:
                reason = str(problem).splitlines()[0]
                raise OptionError(
                    f"{address}: no Dask scheduler answers there ({reason})"
                ) from None
            with client:
                yield Dask(client)
            return
        count = workers or Local().cores
        local = LocalCluster(
            count, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        )
        with local as cluster, Client(cluster) as client:
            yield Dask(client, direct=True)


def frame_chunks(
    engine: Dask, table: Any, columns: Mapping[str, str] | None = None, missing: str = "error"
) -> Chunks:
    """Return the rows of a Dask dataframe, in its partitions."""
    from .parquet_files import Chunks, TableChunk, columns_of

    roles = columns_of({name: str(kind) for name, kind in table.dtypes.items()}, columns)
    parts = engine.client.compute(table.to_delayed())
    chunks = [engine.submit(TableChunk, part, roles, missing) for part in parts]
    return Chunks(tuple(chunks), 0, ("dataframe",), {role: whole for role, _, whole in roles})
