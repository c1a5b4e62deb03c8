"""Options and helpers of commands that are not yet in the table of options."""

from __future__ import annotations

from typing import Any

from .._progress import progress_bar
from ._output import is_first, note, show_json
from ._reading import examine_annotations, read_annotations
from .options import READING, options

__all__ = [
    "examine_annotations",
    "is_first",
    "json_option",
    "note",
    "progress_bar",
    "read_annotations",
    "reading_options",
    "seed_option",
    "show_json",
]

json_option, seed_option = options("json"), options("seed")
reading_options: Any = options(*READING)
