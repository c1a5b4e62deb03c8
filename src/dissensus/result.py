"""Results: what every verb returns.

A verb's result writes by hand what only it knows: `tables`, `sentences`, `figures`, and `sections`
where these three in a row do not do. Dataframes, JSON, the terminal, notebooks, pages and the
workbench follow from them once, here. Results are immutable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .base.arrays import Floats, FrozenArrays, Integers
from .base.names import Names
from .base.storage import as_plain
from .base.tables import Drawable
from .base.tables import Table as Table

if TYPE_CHECKING:
    from .pages.charts import Figure
    from .pages.sections import Section


@dataclass(frozen=True, eq=False, repr=False)
class Result(Drawable):
    """What a verb returns: tables, sentences and figures, from which every view follows.

    Attributes
    ----------
    notes
        Remarks to show with the result, a sentence each.
    """

    notes: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def tables(self) -> Mapping[str, Table]:
        """Columns by name, in tables by title; the first is the main one."""
        return {}

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the result says, a sentence each."""
        return ()

    @property
    def figures(self) -> Mapping[str, Figure]:
        """Charts by name; the first is what `plot` returns."""
        return {}

    def sections(self) -> tuple[Section, ...]:
        """Return what every view shows, as data without layout: by default sentences and tables."""
        from .pages.sections import Section, plain_table

        panels = [[plain_table(title, table)] for title, table in self.tables.items()]
        return (Section("result", "", text=self.sentences, notes=self.notes, panels=panels),)

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, ready for JSON; `None` for NaN."""
        return as_plain(self)

    def show(self, **settings: Any) -> None:
        """Print the sections to the terminal; settings are those of `sections`."""
        from .pages.terminal import print_sections

        print_sections(self.sections(**settings))

    def _table(self) -> Table:
        return next(iter(self.tables.values()))

    def _chart(self) -> tuple[Figure | None, str]:
        return next(iter(self.figures.values()), None), "there is nothing to draw"


@dataclass(frozen=True, eq=False)
class Predictions(FrozenArrays):
    """A label for every item, perhaps with a posterior."""

    items: Names
    classes: Names
    label: Integers  # (item): -1 where undecided
    posterior: Floats | None = None  # (item, class)
    ordered: bool = False  # whether classes are in order

    @property
    def kind(self) -> str:
        """The kind of answers that these are."""
        return "classes"


@dataclass(frozen=True, eq=False)
class Values(FrozenArrays):
    """A number for every item."""

    items: Names
    value: Floats  # (item): NaN where there is none

    @property
    def kind(self) -> str:
        """The kind of answers that these are."""
        return "numbers"
