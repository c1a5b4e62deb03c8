"""What all questions about models share: results with a section, and the words of sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..base.storage import as_rows
from ..base.tables import Table, columns_of
from ..pages.sections import Section, SortableTable
from ..pages.sections import Table as SmallTable
from ..pages.wording import interval
from ..result import Result

ENOUGH = 50  # human labels that answer most questions

Row = TypeVar("Row")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Question(Result):
    """What the data say about one question: sentences, tables and charts of a section."""

    name: ClassVar[str]
    title: ClassVar[str]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {' '.join(self.sentences)}>"

    @property
    def small_table(self) -> SmallTable | None:
        """What a section shows beside its sentences."""
        return None

    @property
    def sortable_table(self) -> SortableTable | None:
        """What a section shows below, to sort."""
        return None

    def sections(self) -> tuple[Section, ...]:
        """Return one section: sentences, the charts that the data allow, and a table."""
        table = self.small_table
        panels: list[list[SmallTable | str]] = [[*self.figures]]
        panels += [[table]] if table is not None and table.rows else []
        return (
            Section(
                self.name,
                self.title,
                self.sentences,
                panels=[row for row in panels if row],
                table=self.sortable_table,
            ),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return tables as rows and the sentences, ready for JSON."""
        rows = {name: as_rows(table) for name, table in self.tables.items()}
        return rows | {"sentences": list(self.sentences)}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Estimates(Question, Sequence[Row]):
    """Estimates of one kind, a row each."""

    rows: tuple[Row, ...] = ()

    @property
    def tables(self) -> Mapping[str, Table]:
        """The estimates in numbers."""
        return {self.name: table_of(self.rows)}

    def __getitem__(self, position: Any) -> Any:
        return self.rows[position]

    def __len__(self) -> int:
        return len(self.rows)


def table_of(rows: Iterable[Any], **names: str) -> Table:
    """Return rows as columns: their numbers and texts, some by another name, or without any."""
    table = columns_of(
        [
            {
                names.get(name, name): value
                for name, value in vars(row).items()
                if not isinstance(value, (tuple, np.ndarray))
            }
            for row in rows
        ]
    )
    return {name: column for name, column in table.items() if name}


def too_few(have: int, need: int, noun: str = "labels") -> str:
    """Return that something cannot be computed from so few.

    >>> too_few(20, 50)
    'This cannot be told from 20 labels: 50 would do.'
    """
    return f"This cannot be told from {have} {noun}: {need} would do."


def shortened(name: str, most: int = 40) -> str:
    """Return a name that is not longer than a line has room for."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def whole_percent(share: float) -> str:
    """Return a share as sentences about models have it.

    >>> whole_percent(0.786)
    '79 %'
    """
    return f"{100 * share:.0f} %"


def hundredths(low: float, high: float) -> str:
    """Return an interval of shares, in percent; nothing where it is unknown.

    >>> hundredths(0.714, 0.874)
    '71 to 87'
    """
    return interval(100 * low, 100 * high, ".0f")


def points(value: float) -> str:
    """Return the size of a difference of shares, in points."""
    return f"{abs(100 * value):.0f}"


def names_axis(names: Sequence[str], limit: int, **axis: Any) -> dict[str, Any]:
    """Return the encoding of names in this order, not longer than so many pixels."""
    sizes = {"labelLimit": limit, **axis}
    return {"type": "nominal", "title": None, "sort": names, "axis": sizes}
