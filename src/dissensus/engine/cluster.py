"""Dask clusters: one that is there already, or one of this machine's cores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import OptionError
from .dask import Dask

__all__ = ["joined"]


@contextmanager
def joined(address: str | None = None, workers: int | None = None) -> Iterator[Dask]:
    """Yield the cluster at an address, or one of this machine's cores that ends afterwards."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise OptionError("--engine dask needs Dask: pip install 'dissensus[dask]'") from None
    quiet = {"distributed.admin.large-graph-warning-threshold": "1TB"}
    with dask.config.set({**quiet, "distributed.scheduler.allowed-failures": 10}):
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
        count = workers or len(os.sched_getaffinity(0))
        made = LocalCluster(count, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
        with made as cluster, Client(cluster) as client:
            yield Dask(client)
