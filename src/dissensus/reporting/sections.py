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
from .embedding import fill, framed

__all__ = [
    "Cell",
    "Download",
    "Page",
    "PageReport",
    "Row",
    "Section",
    "SortableTable",
    "Table",
    "number_cell",
    "with_interval",
]

Cell = tuple[str, Any]  # the text, and a number to sort by or a CSS class


class Table(NamedTuple):
    """A small table; all columns after the first `n_texts` are numbers."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_texts: int = 1
    hide_caption: bool = False


class Row(NamedTuple):
    """A row of a sortable table, and the kinds that readers can filter by."""

    cells: Sequence[Cell]
    kinds: Sequence[str] = ()


class SortableTable(NamedTuple):
    """A table to sort, search and filter.

    Columns have a kind: `name` for the first, `text`, `number`, `verdict`, or `plain` and
    `plain number` if there is no point in sorting. With `details`, a click on a name opens the
    details of an `annotator` or `item`.
    """

    name: str
    caption: str
    heads: Mapping[str, str]  # name → kind
    rows: Sequence[Row]
    details: str = ""
    hint: str = "a word"
    filter: str = ""


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
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Page:
    """Everything on a page; `data` is for its script."""

    title: str
    sentences: Sequence[str]
    facts: Mapping[str, str]
    sections: Sequence[Section]
    charts: Mapping[str, Figure]
    downloads: Mapping[str, Download]
    about: Mapping[str, str]
    method: str
    seed: int
    advice: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    def render(self) -> str:
        """Return the page as HTML."""
        downloads = {name: one for name, one in self.downloads.items() if one.rows}
        data = {
            **self.data,
            "charts": {name: one.spec for name, one in self.charts.items()},
            "downloads": {name: [one.head, one.rows] for name, one in downloads.items()},
        }
        sections = [("overview", "Summary"), *((one.name, one.title) for one in self.sections)]
        return fill(
            "report.html",
            data,
            charts=bool(self.charts),
            page=self,
            title=self.title,
            sections=sections,
            downloads=downloads,
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


def number_cell(value: float, form: str | Callable[[float], str] = ".4g") -> Cell:
    """Return a number for a sortable table, formatted.

    >>> number_cell(0.25, ".0%"), number_cell(math.nan)
    (('25%', 0.25), ('–', None))
    """
    if math.isnan(value):
        return "–", None
    return form(value) if callable(form) else f"{value:{form}}", float(f"{value:.6g}")


def with_interval(estimate: Any, form: str | Callable[[float], str] = ".3f") -> tuple[str, str]:
    """Return an estimate and its interval as texts; a dash and nothing where there is none."""
    value, low, high = (number_cell(getattr(estimate, name), form)[0] for name in _BOUNDS)
    return value, "" if "–" in (value, low, high) else f"{low} to {high}"


_BOUNDS = ("value", "low", "high")
