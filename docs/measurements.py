"""The tables of benchmarks/, for pages and pictures that are made of them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
_NUMBER = re.compile(r"[-+−]?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Measured:
    """One table: its title, its columns and its rows, as texts."""

    title: str
    columns: list[str]
    rows: list[list[str]]

    def of(self, method: str) -> list[str]:
        """Return the row of a method."""
        return next(row for row in self.rows if row[0] == method)

    def values(self, column: str) -> dict[str, float]:
        """Return method → number of a column, without those that have none."""
        at = self.columns.index(column)
        found = {row[0]: number(row[at]) for row in self.rows}
        return {name: value for name, value in found.items() if value is not None}


def number(text: str) -> float | None:
    """Return the first number of a cell."""
    found = _NUMBER.search(text)
    return float(found[0].replace("−", "-")) if found else None


@cache
def tables(page: str) -> dict[str, Measured]:
    """Return the tables of a page by their titles."""
    (path,) = BENCHMARKS.glob(f"*/{page}.json")
    stored = json.loads(path.read_text(encoding="utf-8"))
    return {one["title"]: Measured(one["title"], one["columns"], one["rows"]) for one in stored}
