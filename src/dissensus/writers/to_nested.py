"""JSON as `{item: {annotator: label}}`; a list where somebody said several things."""

from __future__ import annotations

from typing import Any

from ..annotations import Annotations
from ..errors import OptionError
from .content import Content

__all__ = ["answers"]


def answers(content: Content) -> dict[str, Any]:
    """Return the annotations, item by item."""
    if not isinstance(content.what, Annotations):
        raise OptionError("nested JSON holds classes, not numbers; write a table")
    return content.what.to_dict()
