"""crowd-kit's measures of data and workers."""

from __future__ import annotations

from . import data, workers

__all__ = ["data", "workers"]
