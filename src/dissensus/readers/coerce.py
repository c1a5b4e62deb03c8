"""Annotations and truth from any argument: a path, a table, a mapping, or `Annotations`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..annotations import Annotations


def as_annotations(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    missing: str = "error",
    scale: str = "auto",
) -> Annotations:
    """Return annotations from whatever holds them; `Annotations` are returned as they are.

    Parameters
    ----------
    source
        `Annotations`; a path to anything that `read` reads; a pandas, polars or Arrow table;
        `{item: {annotator: label}}`; or a mapping of column names to columns.
    columns, classes, missing, scale
        As in `read`.

    Examples
    --------
    >>> as_annotations({"item": ["a", "a"], "annotator": ["x", "y"], "label": ["cat", "dog"]})
    <Annotations: 2 labels by 2 annotators on 1 items; classes cat, dog>
    """
    if isinstance(source, Annotations) and scale == "auto":
        return source
    from .reading import read

    return read(source, columns=columns, classes=classes, missing=missing, scale=scale)


def as_truth(source: Any) -> dict[str, str]:
    """Return `{item: label}` from a mapping, a pandas Series or table, or a path.

    >>> as_truth({"a": "cat", 7: 1.0})
    {'a': 'cat', '7': '1'}
    """
    from .truth import read_truth

    return read_truth(source)
