"""Writing: annotations and results in, files in every format out."""

from __future__ import annotations

from .targets import losses
from .writing import write

__all__ = ["losses", "write"]
