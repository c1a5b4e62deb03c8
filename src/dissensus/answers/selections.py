"""Annotators who are also authors of items: whose item it is, and labels of own work left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from ..base.names import text
from ..base.arrays import Integers
from .annotations import Annotations
from .base import Relation
from .numbers import Numbers
from ..errors import DataError

__all__ = ["author_codes", "without_own"]

T = TypeVar("T", Annotations, Numbers)


def author_codes(answers: Relation, authors: Mapping[str, str]) -> Integers:
    """Return the author of every item by code; -1 where it is not known or is no annotator."""
    code = {name: number for number, name in enumerate(answers.annotators.tolist())}
    items = answers.items.tolist()
    author = [code.get(text(authors[item]), -1) if item in authors else -1 for item in items]
    return np.array(author, dtype=np.int64)


def without_own(answers: T, authors: Mapping[str, str]) -> tuple[T, int]:
    """Return answers without those of authors about their own items, and how many these were.

    >>> from dissensus import Numbers
    >>> grades = Numbers.from_columns(["a", "a", "b"], ["ann", "bob", "ann"], [9, 4, 6])
    >>> without_own(grades, {"a": "ann", "b": "bob"})
    (<Numbers: 2 answers by 2 annotators on 2 items; 4 to 6>, 1)
    """
    author = author_codes(answers, authors)
    if not (author >= 0).any():
        raise DataError("no item has an author among the annotators; write both as in the labels")
    own = author[answers.item] == answers.annotator
    return answers.keep(~own), int(own.sum())
