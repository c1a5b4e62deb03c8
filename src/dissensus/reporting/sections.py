"""One page for every report: sentences and key figures, then sections.

A report decides what its sections contain; the look is in `templates/`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .._files import atomic_file
from .charts import Figure
from .embedding import fill, framed, plain
from .summary import CONFIDENT

__all__ = [
    "Column",
    "Download",
    "Page",
    "PageReport",
    "Section",
    "SortableTable",
    "Table",
    "formatted",
    "with_interval",
]


class Table(NamedTuple):
    """A small table; all columns after the first `n_texts` are numbers."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_texts: int = 1
    hide_caption: bool = False


class Column(NamedTuple):
    """A column of a sortable table; its kind is `number` if a format is given.

    Other kinds are `verdict`, and `plain` and `plain number` if there is no point in sorting.
    """

    values: Any
    form: str | Callable[[float], str] | None = None
    kind: str = "text"
    classes: Sequence[str] = ()  # of CSS, by row

    def cells(self) -> list[tuple[str, Any]]:
        """Return the text of every cell, with a number to sort by or a CSS class."""
        values = self.values.tolist() if hasattr(self.values, "tolist") else list(self.values)
        if self.form is not None:
            return [(formatted(value, self.form), plain(value)) for value in values]
        return list(zip(values, self.classes or [""] * len(values), strict=True))


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
        """Return the cells of every row."""
        return list(zip(*(column.cells() for column in self.columns.values()), strict=True))


class Section(NamedTuple):
    """A part of a page; panels are rows of tables and names of figures, side by side."""

    name: str
    title: str
    text: Sequence[str] = ()
    notes: Sequence[str] = ()
    findings: Sequence[Any] | None = None
    panels: Sequence[Sequence[Table | str]] = ()
    table: SortableTable | None = None
    subsections: Sequence[Section] = ()


class Download(NamedTuple):
    """A table that the page offers as CSV."""

    title: str
    columns: Mapping[str, Any]

    def rows(self) -> list[list[Any]]:
        """Return the rows, with six digits of every number."""
        return [
            [float(f"{value:.6g}") if isinstance(value, float) else value for value in row]
            for row in zip(*(plain(values) for values in self.columns.values()), strict=True)
        ]


@dataclass(frozen=True)
class Page:
    """Everything on a page; `data` is for its script."""

    title: str
    sentences: Sequence[str]
    facts: Mapping[str, str]
    sections: Sequence[Section]
    charts: Mapping[str, Figure]
    downloads: Mapping[str, Download]
    terms: Sequence[str]  # explained at the end
    method: str
    seed: int
    advice: Sequence[str] = ()
    samples: Sequence[str] | None = None  # parts that were computed on a sample
    data: Mapping[str, Any] = field(default_factory=dict)

    def render(self) -> str:
        """Return the page as HTML."""
        tables = {name: [[*one.columns], one.rows()] for name, one in self.downloads.items()}
        tables = {name: table for name, table in tables.items() if table[1]}
        data = {
            **self.data,
            "charts": {name: one.spec for name, one in self.charts.items()},
            "downloads": tables,
        }
        sections = [("overview", "Summary"), *((one.name, one.title) for one in self.sections)]
        return fill(
            "report.html",
            data,
            charts=bool(self.charts),
            page=self,
            title=self.title,
            sections=sections,
            confident=f"{CONFIDENT:.0%}",
            downloads={name: self.downloads[name] for name in tables},
        )


class PageReport:
    """A report that begins with sentences and shows as one self-contained page."""

    name: str
    sentences: Any  # list[str], often cached

    def layout(self) -> Page:
        """Return what the page shows."""
        raise NotImplementedError

    def page(self) -> str:
        """Return the report as one self-contained page."""
        return self.layout().render()

    def save(self, path: str | Path) -> None:
        """Write the page."""
        page = self.page()
        with atomic_file(path) as draft:
            draft.write_text(page, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.name}: {' '.join(self.sentences)}>"

    def _repr_html_(self) -> str:
        return framed(self.page())


def formatted(value: float, form: str | Callable[[float], str] = ".4g") -> str:
    """Return a number as text, a dash for NaN.

    >>> formatted(0.25, ".0%"), formatted(math.nan)
    ('25%', '–')
    """
    if math.isnan(value):
        return "–"
    return form(value) if callable(form) else f"{value:{form}}"


def with_interval(estimate: Any, form: str | Callable[[float], str] = ".3f") -> tuple[str, str]:
    """Return an estimate and its interval as texts; a dash and nothing where there is none."""
    value, low, high = (
        formatted(one, form) for one in (estimate.value, estimate.low, estimate.high)
    )
    return value, "" if "–" in (value, low, high) else f"{low} to {high}"
