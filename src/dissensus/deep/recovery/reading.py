"""What recovery reads: one label per item with its classes, distances between them, and votes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ...answers.annotations import Annotations
from ...base.names import Names, as_names, code, indices_of
from ...errors import DataError, OptionError
from ...formats import kind_of_labels, read_truth
from ...formats.sources import open_source
from ...formats.tables import column_names, read_columns
from ...metrics import ranks
from .base import DISTANCES, distances_from_table


class LabelledItems(NamedTuple):
    """One label per item, and all classes in order."""

    items: Names
    labels: list[str]
    classes: list[str]


def read_labelled(
    path: str | Path, *, classes: Sequence[str] | None = None, scale: str = "auto"
) -> LabelledItems:
    """Return the labels of a table; numbers are classes only if their scale or classes say so."""
    label_of = read_truth(path)
    labels = list(label_of.values())
    kind, reason = kind_of_labels(labels)
    if classes is None and kind == "numeric" and scale not in ("ordinal", "nominal"):
        problem = f"recover needs classes, but {reason}"
        raise DataError(problem, remedy="declares them as classes", classes=...)
    if classes is None:
        names = code(labels)[1]
        classes = names[ranks(names).argsort()].tolist()
    return LabelledItems(as_names(list(label_of)), labels, list(classes))


def read_distance(distance: str | None, *, scale: str, classes: Sequence[str]) -> Any:
    """Return the distance between classes: its name, or that of a table; ordered ones have one."""
    if distance is None:
        return "linear" if scale == "ordinal" else None
    if distance in DISTANCES:
        return distance
    if not Path(distance).exists():
        remedy = f"{{}}: no such table; or one of {', '.join(DISTANCES)}"
        raise OptionError(remedy=remedy, distance=distance)
    source = open_source(Path(distance))
    return distances_from_table([column_names(source), *read_columns(source, None).rows()], classes)


def in_order(annotations: Annotations, items: Names, where: str) -> Annotations:
    """Return the annotations of these items, in this order."""
    annotations.check_classes("recover")
    codes = indices_of(items, annotations.items)
    if (codes < 0).any():
        name = items[codes < 0][0]
        raise DataError(f"no annotations of item {name!r}, which has a label", where=where)
    return annotations.take(codes)
