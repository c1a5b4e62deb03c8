"""Beyond memory, beyond one machine, and labels that keep arriving.

`aggregate_files` runs any additive method over Parquet files, from disk or on a cluster;
`OnlineAggregation` keeps labels up to date while annotations arrive, and `Stream` stores it in a
folder.

Label Studio is followed while people work in it: what it sends, and what is written back.
"""

from __future__ import annotations

from .fitting import ShardedFit, fit_shards
from .label_studio_api import ApiKey, LabelStudioApi, read_api_key
from .label_studio_project import LabelStudioProject
from .online import OnlineAggregation
from .parquet import RowReading, aggregate_files
from .shards import ShardedAnnotations, shard_rows
from .statistics import agree_shards, quality_intervals
from .stream import Stream
from .webhooks import WebhookReceiver

__all__ = [
    "ApiKey",
    "LabelStudioApi",
    "LabelStudioProject",
    "OnlineAggregation",
    "RowReading",
    "ShardedAnnotations",
    "ShardedFit",
    "Stream",
    "WebhookReceiver",
    "aggregate_files",
    "agree_shards",
    "fit_shards",
    "quality_intervals",
    "read_api_key",
    "shard_rows",
]
