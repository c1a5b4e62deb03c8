"""Beyond memory, beyond one machine, and labels that keep arriving.

`aggregate_files` runs any additive method over Parquet files, from disk or on a cluster;
`OnlineAggregation` keeps labels up to date while annotations arrive, and `Stream` stores it in a
folder.
"""

from __future__ import annotations

from .agreement import agree_shards
from .fitting import ShardedFit, fit_shards
from .online import OnlineAggregation
from .parquet import aggregate_files
from .statistics import quality_intervals
from .shards import ShardedAnnotations, shard_rows
from .stream import Stream

__all__ = [
    "OnlineAggregation",
    "ShardedAnnotations",
    "ShardedFit",
    "Stream",
    "aggregate_files",
    "agree_shards",
    "fit_shards",
    "quality_intervals",
    "shard_rows",
]
