"""Reading: files, tables and exports of labelling tools in, `Annotations` out."""

from __future__ import annotations

from .numeric import as_numbers
from .predictions import read_predictions
from .reading import Reading, examine, read
from .truth import read_truth

__all__ = ["Reading", "as_numbers", "examine", "read", "read_predictions", "read_truth"]
