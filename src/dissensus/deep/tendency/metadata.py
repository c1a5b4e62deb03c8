"""Metadata of annotators as numbers: groups they belong to, and quantities.

A column of numbers with more than `_FEW` different values becomes one standardized feature; any
other column one feature per value, minus the value's share, so that zero is the average annotator.
Missing and unknown values are zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...base.names import text
from ...base.arrays import Floats
from ...errors import DataError

Table = Mapping[str, Mapping[str, Any]]  # annotator → column → value

_FEW = 5  # different numbers that are still treated as groups
_MOST = 50  # groups of a column; rarer ones are ignored


@dataclass(frozen=True)
class Metadata:
    """An encoding of columns as features."""

    numbers: dict[str, tuple[float, float]]  # column → mean, standard deviation
    groups: dict[str, dict[str, float]]  # column → value → share

    @classmethod
    def fit(cls, table: Table) -> Self:
        """Return the encoding of a table of annotators.

        >>> Metadata.fit({"a": {"party": "x"}, "b": {"party": "y"}}).names
        ['party = x', 'party = y']
        """
        numbers: dict[str, tuple[float, float]] = {}
        groups: dict[str, dict[str, float]] = {}
        for column in dict.fromkeys(name for row in table.values() for name in row):
            values = [row[column] for row in table.values() if not _missing(row.get(column))]
            parsed = [_number(value) for value in values]
            if values and None not in parsed and len(set(parsed)) > _FEW:
                number = np.array(parsed, dtype=np.float64)
                numbers[column] = (float(number.mean()), float(number.std()) or 1.0)
                continue
            common = Counter(text(value) for value in values).most_common(_MOST)
            if len(common) > 1:
                groups[column] = {name: count / len(values) for name, count in sorted(common)}
        if not numbers and not groups:
            raise DataError("metadata in which no column varies; leave them out")
        return cls(numbers, groups)

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        groups = [f"{column} = {value}" for column, each in self.groups.items() for value in each]
        return [*self.numbers, *groups]

    def features(self, table: Table, annotators: Iterable[str]) -> Floats:
        """Return features of annotators, zeros for those not in the table."""
        rows = [self._row(table.get(name, {})) for name in annotators]
        return np.array(rows).reshape(-1, len(self.names))

    def _row(self, values: Mapping[str, Any]) -> list[float]:
        out = []
        for column, (mean, std) in self.numbers.items():
            number = _number(values.get(column))
            out.append(0.0 if number is None else (number - mean) / std)
        for column, shares in self.groups.items():
            value = values.get(column)
            name = "" if _missing(value) else text(value)
            out += [
                (name == each) - share if name in shares else 0.0 for each, share in shares.items()
            ]
        return out


def _missing(value: Any) -> bool:
    return value is None or value == "" or value != value


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or _missing(value):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None
