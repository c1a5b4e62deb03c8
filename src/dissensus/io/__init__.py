"""Reading and writing: files and tables outside, `Annotations` and results inside."""

from __future__ import annotations

from .folders import write_folder
from .numeric import as_numbers
from .predictions import read_predictions
from .reading import Reading, examine, read
from .truth import read_truth
from .writing import losses, write

__all__ = [
    "Reading",
    "as_numbers",
    "examine",
    "losses",
    "read",
    "read_predictions",
    "read_truth",
    "write",
    "write_folder",
]
