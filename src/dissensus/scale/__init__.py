"""Beyond memory, beyond one machine, and labels that never stop arriving.

`aggregate_files` runs any additive method over Parquet files, from disk or on a cluster;
`Running` keeps labels up to date while annotations arrive, and `Stream` keeps it in a folder.
"""

from __future__ import annotations

from .agreement import agree_shards
from .coding import Coded, code_files
from .files import aggregate_files
from .fitting import Outcome, fit_shards
from .resampling import quality_intervals
from .running import Running
from .stream import Stream

__all__ = [
    "Coded",
    "Outcome",
    "Running",
    "Stream",
    "aggregate_files",
    "agree_shards",
    "code_files",
    "fit_shards",
    "quality_intervals",
]
