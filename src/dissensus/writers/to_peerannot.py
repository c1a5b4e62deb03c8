"""The folder of peerannot: annotations and metadata, and the labels of a result."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .._names import numbered
from ..annotations import Annotations
from ..errors import OptionError
from ..readers.folders import write_folder, write_labels
from ..result import Aggregation, gold_codes
from .content import Content

__all__ = ["clashes", "save"]


def save(content: Content, folder: str | Path) -> None:
    """Write the folder; a result also leaves its label file there."""
    annotations = content.annotations
    if not isinstance(annotations, Annotations):
        raise OptionError("peerannot's layout holds no numbers; write a table")
    arrays = {}
    known = (
        gold_codes(annotations, content.gold)
        if _plain(annotations) and not clashes(content)
        else None
    )
    if known is not None:
        arrays["ground_truth"] = known
    write_folder(folder, annotations, arrays=arrays)
    if isinstance(content.what, Aggregation):
        method = content.what.method
        write_labels(folder, content.what, method, hard=False, suffix=False)


def clashes(content: Content) -> list[str]:
    """Say what the folder cannot tell."""
    annotations = content.annotations
    if content.gold and isinstance(annotations, Annotations):
        unknown = set(content.gold.values()) - set(annotations.classes.tolist())
        if not _plain(annotations):
            return ["gold is left out: the folder's truth is for items and classes with numbers"]
        if unknown or not set(content.gold) & set(annotations.items.tolist()):
            return ["gold is left out: it is about other items or classes"]
    return []


def _plain(annotations: Annotations) -> bool:
    names = (annotations.items, annotations.classes)
    return all(np.array_equal(given, numbered(len(given))) for given in names)
