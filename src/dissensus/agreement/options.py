"""Answers with several options: every option is a question of its own, yes or no."""

from __future__ import annotations

import numpy as np

from .._names import as_names
from ..annotations import Annotations
from ..errors import OptionError

__all__ = ["split_options"]


def split_options(annotations: Annotations, mark: str = "|") -> dict[str, Annotations]:
    """Return for every option who chose it: annotations with the classes no and yes.

    Labels are names of options with a mark between them; an empty label chooses nothing.

    >>> annotations = Annotations.from_columns("aabb", "xyxy", ["cat|dog", "dog", "cat", "cat"])
    >>> split_options(annotations)["dog"].to_dict()
    {'a': {'x': 'yes', 'y': 'yes'}, 'b': {'x': 'no', 'y': 'no'}}
    """
    if not mark:
        raise OptionError("the mark between options is empty; give one, such as |")
    chosen = [
        {part.strip() for part in name.split(mark)} - {""} for name in annotations.classes.tolist()
    ]
    options = sorted(set().union(*chosen)) if chosen else []
    return {
        option: _asked(annotations, [option in names for names in chosen]) for option in options
    }


def _asked(annotations: Annotations, yes: list[bool]) -> Annotations:
    """Return the same annotations with the classes no and yes."""
    return Annotations.from_codes(
        annotations.item,
        annotations.annotator,
        np.array(yes, dtype=np.uint8)[annotations.label],
        items=annotations.items,
        annotators=annotations.annotators,
        classes=as_names(["no", "yes"]),
    )
