"""Answers the other way round, `{annotator: {item: label}}`, as some peerannot sets have them.

Content cannot tell which way round an object is, so this is read only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from ._platforms import as_label
from .exports import Export, Head, Question
from .records import parse
from .sources import Source

__all__ = ["looks_inverted", "read", "recognises", "turned"]

_PEOPLE = ("worker", "annotator", "user", "rater", "performer", "coder")


def recognises(head: Head) -> bool:  # noqa: ARG001
    """Return that it is only read when told."""
    return False


def read(source: Source) -> Export:
    """Return the answers of an object of annotators."""
    given = parse(source, source.text(), None)
    if not isinstance(given, dict) or not all(isinstance(one, dict) for one in given.values()):
        raise source.fail("answers should be {annotator: {item: label}}")
    rows = [
        (item, annotator, as_label(label))
        for annotator, annotations in given.items()
        for item, labels in annotations.items()
        for label in (labels if isinstance(labels, list) else [labels])
    ]
    schema = {"item": pl.String, "annotator": pl.String, "label": pl.String}
    return Export({"label": Question(pl.DataFrame(rows, schema=schema, orient="row"))})


def turned(given: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return `{item: {annotator: label}}` of `{annotator: {item: label}}`."""
    answers: dict[str, dict[str, Any]] = {}
    for annotator, labels in given.items():
        for item, label in labels.items():
            answers.setdefault(item, {})[annotator] = label
    return answers


def looks_inverted(
    outer: Collection[str], inner: Collection[str], notes: Mapping[str, Any]
) -> bool:
    """Return whether the outer names can hardly be items: by their words, or by their number."""
    if outer and all(name.casefold().startswith(_PEOPLE) for name in outer):
        return not any(name.casefold().startswith(_PEOPLE) for name in inner)
    n_workers = notes.get("n_workers")
    n_items = notes.get("n_task", notes.get("n_tasks"))
    if not (isinstance(n_workers, int) and isinstance(n_items, int)) or n_workers == n_items:
        return False
    return len(outer) <= n_workers < len(inner) <= n_items
