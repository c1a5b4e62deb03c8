"""Smaller pages than the whole report: sentences and key numbers on top, then sections.

A section has words, charts, small tables and tables to sort and search; what it tells is decided
elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .charts import Figure
from .embedding import filled, shown_charts

__all__ = ["Cell", "Download", "Section", "Small", "Sortable", "render_sections"]

Cell = tuple[str, float | str | None]  # what is shown, and what is sorted by


@dataclass(frozen=True)
class Small:
    """A table that is seen at a glance; all but the first columns are numbers."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1


@dataclass(frozen=True)
class Sortable:
    """A table to sort and to search, with the kind of every column: `text` or `number`."""

    name: str
    caption: str
    heads: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    name: str
    title: str
    words: Sequence[str] = ()
    charts: Sequence[str] = ()
    small: Sequence[Small] = ()
    sortable: Sequence[Sortable] = ()
    findings: Sequence[Any] | None = None


@dataclass(frozen=True)
class Download:
    """A table that the page makes into a file."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]] = field(default_factory=list)


def render_sections(
    title: str,
    sentences: Sequence[str],
    facts: Mapping[str, str],
    sections: Sequence[Section],
    *,
    charts: Mapping[str, Figure],
    downloads: Mapping[str, Download],
    about: Mapping[str, str],
    made: str,
) -> str:
    """Return the page."""
    kept = {name: one for name, one in downloads.items() if one.rows}
    return filled(
        "sections.html",
        {
            "charts": {name: one.spec for name, one in charts.items()},
            "downloads": {name: [one.head, one.rows] for name, one in kept.items()},
        },
        title=title,
        sentences=sentences,
        facts=[{"name": name, "value": value} for name, value in facts.items()],
        sections=[("overview", "In short"), *((one.name, one.title) for one in sections)],
        parts=sections,
        charts=shown_charts(dict(charts)),
        downloads=[(name, one.title) for name, one in kept.items()],
        about=about,
        made=made,
    )
