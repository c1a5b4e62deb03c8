"""Numbers that annotators gave to items: the sibling of `Annotations` for measurements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..base.arrays import Array, Floats, check_lengths, tally
from ..base.names import as_names, checked_codes, coded, declared
from ..base.tables import as_column
from ..errors import DataError
from .annotations import Annotations, Scale
from .annotators import Labels, checked_kinds

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Numbers(Labels):
    """Numbers that annotators gave to items.

    Examples
    --------
    >>> Numbers.from_columns(["a", "a", "b"], ["x", "y", "x"], [1.5, 2, 7])
    <Numbers: 3 answers by 2 annotators on 2 items; 1.5 to 7>
    """

    kind: ClassVar[str] = "numbers"
    by_answer: ClassVar[tuple[str, ...]] = ("value",)

    value: Floats  # (answer)
    scale: Scale = "interval"

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
        carried: Any = {name: np.asarray(values) for name, values in columns.items()}
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
        scale: Scale = "interval",
        annotator_kinds: Iterable[Any] | Mapping[Any, Any] | None = None,
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
            scale=scale,
            annotator_kinds=checked_kinds(annotator_kinds, people),
            columns={name: np.asarray(values)[order] for name, values in columns.items()},
        )

    def as_classes(self) -> Annotations:
        """Return annotations whose classes are the different numbers, in order."""
        values, label = np.unique(self.value, return_inverse=True)
        return Annotations(
            index=self.index,
            annotator=self.annotator,
            label=label.astype(np.min_scalar_type(max(len(values) - 1, 0))),
            items=self.items,
            annotators=self.annotators,
            classes=as_names(values.tolist()),
            scale=self.scale,
            annotator_kinds=self.annotator_kinds,
            columns=self.columns,
            left_out=self.left_out,
        )

    def _answers(self, rows: slice) -> Array:
        return self.value[rows]

    def answer_column(self) -> pl.Series:
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
        row, wrong = next((row, entry) for row, entry in rows if not _is_number(entry))
        raise DataError(f"row {row}: {wrong!r} is not a number") from None
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(f"row {row + 1}: {numbers[row]} is not a number to work with")
    return numbers


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
