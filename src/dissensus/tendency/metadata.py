"""What is known of annotators, as numbers: groups they belong to, and quantities.

A column whose values are all numbers, more than `_FEW` different ones, becomes one feature of mean
zero and spread one; any other a feature for every value, minus its share, so that zero is the
average annotator. A value that is missing, or was not there before, is zero in all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._names import text
from .._relation import Floats
from ..errors import DataError

__all__ = ["Metadata", "Table"]

Table = Mapping[str, Mapping[str, Any]]  # annotator → column → value

_FEW = 5  # values that are still taken for groups
_MOST = 50  # groups of a column; rarer ones are left out


@dataclass(frozen=True)
class Metadata:
    """How columns become features."""

    numbers: dict[str, tuple[float, float]]  # column → mean, spread
    groups: dict[str, dict[str, float]]  # column → value → share

    @classmethod
    def learn(cls, table: Table) -> Self:
        """Look at a table of annotators.

        >>> Metadata.learn({"a": {"party": "x"}, "b": {"party": "y"}}).names
        ['party = x', 'party = y']
        """
        columns = dict.fromkeys(name for row in table.values() for name in row)
        numbers: dict[str, tuple[float, float]] = {}
        groups: dict[str, dict[str, float]] = {}
        for column in columns:
            values = [row[column] for row in table.values() if _told(row.get(column))]
            found = [_number(value) for value in values]
            if values and None not in found and len(set(found)) > _FEW:
                known = np.array(found, dtype=np.float64)
                numbers[column] = (float(known.mean()), float(known.std()) or 1.0)
                continue
            common = Counter(text(value) for value in values).most_common(_MOST)
            if len(common) > 1:
                groups[column] = {name: count / len(values) for name, count in sorted(common)}
        if not numbers and not groups:
            raise DataError("metadata in which no column varies; leave them out")
        return cls(numbers, groups)

    @property
    def names(self) -> list[str]:
        """What every feature is."""
        told = [f"{column} = {value}" for column, each in self.groups.items() for value in each]
        return [*self.numbers, *told]

    def features(self, table: Table, annotators: Iterable[str]) -> Floats:
        """Return the features of annotators; of those not in the table, zeros."""
        return np.array([self._row(table.get(name, {})) for name in annotators]).reshape(
            -1, len(self.names)
        )

    def _row(self, told: Mapping[str, Any]) -> list[float]:
        out = []
        for column, (mean, spread) in self.numbers.items():
            number = _number(told.get(column))
            out.append(0.0 if number is None else (number - mean) / spread)
        for column, shares in self.groups.items():
            value = told.get(column)
            known = _told(value) and text(value) in shares
            out += [
                (text(value) == name) - share if known else 0.0 for name, share in shares.items()
            ]
        return out


def _told(value: Any) -> bool:
    return value is not None and value != "" and value == value


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not _told(value):
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if np.isfinite(found) else None
