"""One page for every report: sentences and key figures, then sections.

A report decides what its sections contain; the look is in `templates/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from .charts import Figure
from .wording import formatted, with_interval

CONFIDENT = 0.8  # labels with a confidence below this need review
Severity = Literal["serious", "worth knowing"]
SERIOUS: Severity = "serious"
KNOWING: Severity = "worth knowing"


class Table(NamedTuple):
    """A small table; all columns after the first `n_texts` are numbers.

    The first `n_links` are names of annotators or items whose `details` open. On the terminal, a
    table may do without a frame.
    """

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_texts: int = 1
    details: str = ""
    n_links: int = 0
    framed: bool = True


class Drawing(NamedTuple):
    """A drawing with its caption; the markup is escaped where it holds names and texts."""

    title: str
    words: str
    markup: Any  # of markupsafe


def plain_table(caption: str, columns: Mapping[str, Any]) -> Table:
    """Return columns as a small table: texts first as they stand, numbers to three digits.

    >>> plain_table("labels", {"item": np.array(["a"]), "share": np.array([0.25])}).rows
    [('a', '0.250')]
    """
    values = {name: np.asarray(column) for name, column in columns.items()}
    cells = [
        [formatted(value, ".3f") for value in column.tolist()]
        if column.dtype.kind == "f"
        else list(map(str, column.tolist()))
        for column in values.values()
    ]
    n_texts = sum(column.dtype.kind not in "iuf" for column in values.values())
    return Table(caption, list(values), list(zip(*cells, strict=True)), n_texts)


def estimates_table(
    caption: str, estimates: Mapping[str, Any], forms: Mapping[str, Any] | None = None
) -> Table:
    """Return estimates with their intervals, some in a format of their own; `None` is left out."""
    rows = [
        (name, *with_interval(estimate, (forms or {}).get(name, ".2f")))
        for name, estimate in estimates.items()
        if estimate is not None
    ]
    return Table(caption, ["measure", "value", "95% interval"], rows)


class Column(NamedTuple):
    """A column of a sortable table; its kind is `number` if a format is given.

    Other kinds are `verdict`, and `plain` and `plain number` if there is no point in sorting.
    """

    values: Any
    form: str | Callable[[float], str] | None = None
    kind: str = "text"
    classes: Sequence[str] = ()  # of CSS, by row


class SortableTable(NamedTuple):
    """A table to sort, search and filter.

    Rows have kinds that readers can filter by. With `details`, a click on a name opens the
    details of an `annotator` or `item`.
    """

    name: str
    caption: str
    columns: Mapping[str, Column]
    kinds: Sequence[Sequence[str]] = ()
    details: str = ""
    hint: str = "a word"
    filter: str = ""

    def rows(self) -> list[tuple[tuple[str, Any], ...]]:
        """Return the cells of every row: a text, and a number to sort by or a CSS class."""
        cells = []
        for values, form, _, classes in self.columns.values():
            column = values.tolist() if hasattr(values, "tolist") else values
            if form is None:
                cells.append(list(zip(column, classes or [""] * len(column), strict=True)))
            else:
                cells.append([(formatted(value, form), value) for value in column])
        return list(zip(*cells, strict=True))


class Action(NamedTuple):
    """Something to do, and the section of the page that shows why.

    `names` are names of annotators, each with its words in the sentence.
    """

    sentence: str
    section: str = ""
    names: tuple[tuple[str, str], ...] = ()


class Section(NamedTuple):
    """A part of a page; panels are rows of tables, drawings and names of figures, side by side."""

    name: str
    title: str
    text: Sequence[str] = ()
    notes: Sequence[str] = ()
    findings: Sequence[Any] | None = None
    panels: Sequence[Sequence[Table | Drawing | str]] = ()
    table: SortableTable | None = None
    subsections: Sequence[Section] = ()
    folded: Sequence[str] = ()  # about the method
    actions: Sequence[Action] = ()


class Download(NamedTuple):
    """A table that the page offers as CSV."""

    title: str
    columns: Mapping[str, Any]


@dataclass(frozen=True)
class Page:
    """What a page shows after the sentences; `data` is for its script."""

    facts: Mapping[str, tuple[str, str]]  # key figures, and the sections that they open
    sections: Sequence[Section]
    charts: Mapping[str, Figure]
    downloads: Mapping[str, Download]
    terms: Sequence[str]  # explained at the end
    method: str
    samples: Sequence[str] | None = None  # parts that were computed on a sample
    picture: str = ""  # the chart beside the sentences
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """One thing to know before aggregating."""

    code: str
    sentence: str
    count: int
    examples: tuple[str, ...] = ()
    remedy: str = ""
    severity: Severity = KNOWING
