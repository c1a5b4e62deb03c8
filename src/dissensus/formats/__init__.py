"""Reading and writing: files, tables and exports of labelling tools in, answers of any kind out.

`examine` is the way in and `write` the way out. The functions here take whatever holds answers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..answers.annotations import Annotations
from ..answers.base import Relation

if TYPE_CHECKING:
    from .known import read_truth
    from .options import ReadOptions
    from .predictions import read_predictions
    from .reading import Reading, examine, read
    from .scales import kind_of_labels

__all__ = [
    "ReadOptions",
    "Reading",
    "as_answers",
    "as_truth",
    "examine",
    "kind_of_labels",
    "read",
    "read_predictions",
    "read_truth",
]

# Imported on first use: answers that are already in memory need no reader and no polars.
_HOMES = {
    "ReadOptions": "options",
    "Reading": "reading",
    "examine": "reading",
    "kind_of_labels": "scales",
    "read": "reading",
    "read_predictions": "predictions",
    "read_truth": "known",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def as_answers(source: Any, *, kind: str | None = None, **options: Any) -> Any:
    """Return answers from whatever holds them; answers are returned as they are.

    Parameters
    ----------
    source
        Answers; a path to anything that `read` reads, or its `Reading`; a pandas, polars or Arrow
        table; `{item: {annotator: label}}`; or a mapping of column names to columns.
    kind
        `classes` or `numbers` where nothing else will do. Of numbers, classes are the different
        numbers, on an interval scale.
    **options
        As in `read`.

    Examples
    --------
    >>> table = {"item": ["a", "a"], "annotator": ["x", "y"], "label": ["cat", "dog"]}
    >>> as_answers(table)
    <Annotations: 2 labels by 2 annotators on 1 items; classes cat, dog>
    """
    if isinstance(source, Relation) and not options and kind in (None, source.kind):
        return source
    from .reading import examine

    reading = examine(source, kind=kind, **options)
    return reading.annotations if kind == Annotations.kind else reading.answers


def as_truth(source: Any, **options: Any) -> Any:
    """Return known answers from a mapping, a pandas Series, a table or a path; `None` is kept.

    The options are those of `read_truth`.

    >>> as_truth({"a": "cat", 7: 1.0})
    {'a': 'cat', '7': '1'}
    """
    if source is None:
        return None
    from .known import read_truth

    return read_truth(source, **options)
