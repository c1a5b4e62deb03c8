"""Numbers that annotators gave to items: the sibling of `Annotations` for measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ..base.arrays import Array, Floats, check_lengths, tally
from ..base.names import checked_codes, coded, declared
from ..base.tables import as_column
from ..errors import DataError
from .base import Relation

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Numbers(Relation):
    """Numbers that annotators gave to items.

    Examples
    --------
    >>> Numbers.from_columns(["a", "a", "b"], ["x", "y", "x"], [1.5, 2, 7])
    <Numbers: 3 answers by 2 annotators on 2 items; 1.5 to 7>
    """

    kind: ClassVar[str] = "numbers"

    value: Floats  # (answer)

    @classmethod
    def from_columns(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        value: Sequence[float] | Array,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        **columns: Sequence[Any] | Array,
    ) -> Self:
        """Make numbers from three columns, and any more to carry along."""
        check_lengths({"item": item, "annotator": annotator, "value": value, **columns})
        item, items = coded(item, items, "item")
        annotator, annotators = coded(annotator, annotators, "annotator")
        carried = {name: np.asarray(values) for name, values in columns.items()}
        return cls.from_codes(
            item, annotator, np.asarray(value), items=items, annotators=annotators, **carried
        )

    @classmethod
    def from_codes(
        cls,
        item: Array,
        annotator: Array,
        value: Array,
        *,
        items: Iterable[Any] | int,
        annotators: Iterable[Any] | int,
        **columns: Array,
    ) -> Self:
        """Make numbers from integer codes and the names behind them, or their number."""
        check_lengths({"item": item, "annotator": annotator, "value": value, **columns})
        names, people = declared(items, "item"), declared(annotators, "annotator")
        item = checked_codes(item, len(names), "item")
        annotator = checked_codes(annotator, len(people), "annotator")
        value = _as_numbers(value)
        order = np.lexsort((value, annotator, item))
        return cls(
            index=np.concatenate([[0], np.cumsum(tally(item, len(names)))]),
            annotator=annotator[order],
            value=value[order],
            items=names,
            annotators=people,
            columns={name: np.asarray(values)[order] for name, values in columns.items()},
        )

    def keep(self, kept: npt.NDArray[np.bool_]) -> Self:
        """Return only these answers; items and annotators stay declared."""
        return replace(
            self,
            index=np.concatenate([[0], np.cumsum(kept)])[self.index],
            annotator=self.annotator[kept],
            value=self.value[kept],
            columns={name: values[kept] for name, values in self.columns.items()},
        )

    def _answers(self, rows: slice) -> Array:
        return self.value[rows]

    def _answer_column(self) -> pl.Series:
        return as_column(self.value)

    def __repr__(self) -> str:
        span = f"; {self.value.min():g} to {self.value.max():g}" if len(self) else ""
        return (
            f"<Numbers: {len(self)} answers by {self.n_annotators} annotators "
            f"on {self.n_items} items{span}>"
        )


def _as_numbers(value: Array) -> Floats:
    """Return answers as numbers, or say which of them is none."""
    try:
        numbers = value.astype(np.float64)
    except (TypeError, ValueError):
        rows = enumerate(value.tolist(), 1)
        row, given = next((row, one) for row, one in rows if not _is_number(one))
        raise DataError(f"row {row}: {given!r} is not a number") from None
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(f"row {row + 1}: {numbers[row]} is not a number to work with")
    return numbers


def _is_number(given: Any) -> bool:
    try:
        float(given)
    except (TypeError, ValueError):
        return False
    return True
