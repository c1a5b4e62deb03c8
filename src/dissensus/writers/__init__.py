"""Writing: annotations and results in, files in every format out."""

from __future__ import annotations

from .cards import Card
from .pseudonyms import pseudonymise
from .targets import losses
from .tool_answers import write_answers
from .writing import write

__all__ = ["Card", "losses", "pseudonymise", "write", "write_answers"]
