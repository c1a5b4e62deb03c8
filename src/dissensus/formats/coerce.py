"""Annotations and truth from any argument: a path, a table, a mapping, or `Annotations`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..answers.numbers import Numbers
from ..errors import DataError


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
        `Annotations`; a path to anything that `read` reads, or its `Reading`; a pandas, polars or
        Arrow table; `{item: {annotator: label}}`; or a mapping of column names to columns.
    columns, classes, missing, scale
        As in `read`.

    Examples
    --------
    >>> as_annotations({"item": ["a", "a"], "annotator": ["x", "y"], "label": ["cat", "dog"]})
    <Annotations: 2 labels by 2 annotators on 1 items; classes cat, dog>
    """
    if isinstance(source, Annotations) and scale == "auto":
        return source
    if isinstance(source, Numbers):
        raise DataError(
            "these are numbers, not classes; estimate, agree, identify and check take them"
        )
    from .reading import Reading, read

    if isinstance(source, Reading) and scale == "auto":
        return source.annotations
    return read(source, columns=columns, classes=classes, missing=missing, scale=scale)


def as_truth(source: Any) -> dict[str, str] | None:
    """Return `{item: label}` from a mapping, a pandas Series, a table or a path; `None` is kept.

    >>> as_truth({"a": "cat", 7: 1.0})
    {'a': 'cat', '7': '1'}
    """
    if source is None:
        return None
    from .side_tables import read_truth

    return read_truth(source)


def as_answers(source: Any) -> Any:
    """Return answers of any kind from a path, a table, or what a file was read as.

    >>> as_answers({"item": ["a", "a"], "annotator": ["x", "y"], "label": ["cat", "dog"]}).kind
    'classes'
    """
    if isinstance(source, Relation):
        return source
    from .any_kind import AnswerReading, read
    from .reading import Reading

    if isinstance(source, Reading):
        return source.annotations
    return source.answers if isinstance(source, AnswerReading) else read(source)
