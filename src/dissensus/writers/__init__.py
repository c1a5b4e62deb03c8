"""Writing: annotations and results in, files in every format out."""

from __future__ import annotations

from .writing import losses, write

__all__ = ["losses", "write"]
