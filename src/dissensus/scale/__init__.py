"""Beyond memory, beyond one machine, and labels that keep arriving.

`aggregate_files` runs any additive method over Parquet files, from disk or on a cluster;
`OnlineAggregation` keeps labels up to date while annotations arrive, and `Stream` stores it in a
folder.

Labelling tools while people work in them: what they send, and what is written back.
"""

from __future__ import annotations

from .statistics import agree_shards
from .fitting import ShardedFit
from .fitting import fit_shards
from .online import OnlineAggregation
from .parquet import aggregate_files
from .statistics import quality_intervals
from .shards import ShardedAnnotations
from .shards import shard_rows
from .stream import Stream
from .label_studio_api import ApiKey
from .label_studio_api import LabelStudioApi
from .label_studio_api import read_api_key
from .label_studio_project import LabelStudioProject
from .label_studio_api import WebhookReceiver

__all__ = ['ApiKey', 'LabelStudioApi', 'LabelStudioProject', 'OnlineAggregation', 'ShardedAnnotations', 'ShardedFit', 'Stream', 'WebhookReceiver', 'aggregate_files', 'agree_shards', 'fit_shards', 'quality_intervals', 'read_api_key', 'shard_rows']
