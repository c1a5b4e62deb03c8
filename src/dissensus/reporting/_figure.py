"""A picture of a report: what it shows, in words, as numbers and as Vega-Lite draws it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .charts import save_chart

__all__ = ["Figure"]


@dataclass(frozen=True)
class Figure:
    """A picture with its words.

    Attributes
    ----------
    title, words
        What it is, and what is to be seen on it, in a sentence.
    spec
        How Vega-Lite draws it.
    numbers
        The same as a table, the head first, for those who see no picture; empty where the page
        has such a table anyway.
    """

    title: str
    words: str
    spec: dict[str, Any]
    numbers: tuple[tuple[str, ...], ...] = ()

    def save(self, path: str | Path) -> None:
        """Write it as .svg, .png or .html."""
        save_chart(self.spec, path)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"application/vnd.vegalite.v6+json": self.spec, "text/plain": self.words}
