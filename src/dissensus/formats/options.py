"""How to read a source: the options of `read` and `examine`, as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import OptionError
from .columns import CLASSES, as_kind

SPELLINGS = ("keep", "join")


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How to read a file, folder or table.

    Parameters
    ----------
    kind
        The kind, if it should not be recognised by the columns: `single`, `ordinal`, `numeric`,
        `sets`, `rankings`, `spans`, `boxes`, `points`, `masks` or `texts`.
    format
        The format, if it should not be recognised from the content.
    question
        Which question, if there are several.
    columns
        Which column is which, `{"item": …, "annotator": …, "label": …}`, where their names are not
        known ones; numbers from 1 for a table without a header. Further entries are carried along
        under their key.
    classes
        All classes, in order, where labels may not show them all.
    missing
        What to do with rows that lack an item, annotator or label: `error` or `drop`.
    scale
        The scale of the labels: nominal, ordinal, interval (or numeric) or ratio; `auto` detects
        it, see `formats.scales`.
    duplicates
        What to do where an annotator labelled an item more than once: `count` all labels, keep the
        `first` or `last`, or `error`.
    spelling
        What to do with names of items, annotators and classes that look like one, such as `cat`
        and `cat` with a space after it: `keep` them apart, or `join` them. The notes of `examine`
        say which there are, and what was joined.
    assigned
        A table of item and annotator: those without a mark have looked and marked nothing.
    inputs
        A table about items: height and width of images, or both sides of comparisons.

    Examples
    --------
    >>> ReadOptions(kind="numbers").kind, ReadOptions(kind="numbers").scale
    ('numeric', 'interval')
    """

    kind: str | None = None
    format: str | None = None
    question: str | None = None
    columns: Mapping[str, str] | None = None
    classes: Sequence[Any] | None = None
    missing: str = "error"
    scale: str = "auto"
    duplicates: str = "count"
    spelling: str = "keep"
    assigned: str | Path | None = None
    inputs: str | Path | None = None

    def __post_init__(self) -> None:
        if self.spelling not in SPELLINGS:
            raise OptionError(f"spelling is {' or '.join(SPELLINGS)}, not {self.spelling!r}")
        kind = as_kind(self.kind)
        object.__setattr__(self, "kind", kind)
        if self.scale == "auto" and kind in CLASSES:
            object.__setattr__(self, "scale", CLASSES[kind])

    @property
    def wants_classes(self) -> bool:
        """Whether labels are to be classes or numbers, whatever else the source holds."""
        return self.kind in CLASSES
