"""Dask clusters: a running one, or one of this machine's cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .._extras import install_command
from ..errors import OptionError
from .dask import Dask
from ..base.local import Local

if TYPE_CHECKING:
    from .chunks import Chunks

# By default Dask returns memory after every array and allocates it again in the next round, which
# takes a third of the time. Here the same arrays recur every round.
_SETTINGS = {
    "distributed.admin.large-graph-warning-threshold": "1TB",
    "distributed.scheduler.allowed-failures": 10,
    "distributed.nanny.pre-spawn-environ": {
        f"{library}_NUM_THREADS": 1 for library in ("OMP", "MKL", "OPENBLAS")
    },
}


@contextmanager
def joined(address: str | None = None, workers: int | None = None) -> Iterator[Dask]:
    """Yield the cluster at an address, or a temporary one of this machine's cores."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise OptionError(f"--engine dask needs Dask: {install_command('dask')}") from None
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
    from .chunks import Chunks, TableChunk, columns_of

    roles = columns_of({name: str(kind) for name, kind in table.dtypes.items()}, columns)
    parts = engine.client.compute(table.to_delayed())
    chunks = [engine.submit(TableChunk, part, roles, missing) for part in parts]
    return Chunks(tuple(chunks), 0, ("dataframe",), {role: whole for role, _, whole in roles})
