"""A report as one self-contained page: its sentences, then sections, charts and downloads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.files import atomic_file
from ..base.formulas import guarded
from ..base.storage import as_plain
from .embedding import fill, framed
from .sections import CONFIDENT, Page, Section

if TYPE_CHECKING:
    from .charts import Figure


def chart_specs(charts: Mapping[str, Figure]) -> dict[str, Any]:
    """Return what draws charts, with their descriptions, by name."""
    return {
        name: {**figure.spec, "description": f"{figure.title}. {figure.words}"}
        for name, figure in charts.items()
    }


class PageReport:
    """A report that begins with sentences and shows as one self-contained page."""

    name: str
    seed: int
    sentences: Any  # list[str], often cached
    actions: Any = ()  # list[Action], often cached

    def layout(self) -> Page:
        """Return what the page shows after the opening."""
        raise NotImplementedError

    @property
    def opening(self) -> Section:
        """The sentences, and what to do."""
        return Section("overview", "Summary", text=self.sentences, actions=self.actions)

    def page(self) -> str:
        """Return the report as one self-contained page."""
        page = self.layout()
        tables = {}
        for name, download in page.downloads.items():
            columns = guarded(
                dict(zip(download.columns, as_plain([*download.columns.values()]), strict=True))
            )
            tables[name] = [[*columns], list(zip(*columns.values(), strict=True))]
        tables = {name: table for name, table in tables.items() if table[1]}
        specs = chart_specs(page.charts)
        return fill(
            "report.html",
            {**page.data, "charts": specs, "downloads": tables},
            charts=bool(specs),
            report=self,
            page=page,
            title=self.name,
            opening=self.opening,
            sections=[(section.name, section.title) for section in (self.opening, *page.sections)],
            confident=f"{CONFIDENT:.0%}",
            downloads={name: page.downloads[name] for name in tables},
        )

    def save(self, path: str | Path) -> None:
        """Write the page."""
        page = self.page()
        with atomic_file(path) as draft:
            draft.write_text(page, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.name}: {' '.join(self.sentences)}>"

    def _repr_html_(self) -> str:
        return framed(self.page())
