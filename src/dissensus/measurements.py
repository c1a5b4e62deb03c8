"""Numbers that annotators gave to items: the sibling of `Annotations` for measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ._relation import Array, Floats, Relation, coded, index_of
from .errors import DataError

__all__ = ["Numbers"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Numbers(Relation):
    """Numbers that annotators gave to items.

    Examples
    --------
    >>> Numbers.from_columns(["a", "a", "b"], ["x", "y", "x"], [1.5, 2, 7])
    <Numbers: 3 answers by 2 annotators on 2 items; 1.5 to 7>
    """

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
        item, items = coded(item, items, "item")
        annotator, annotators = coded(annotator, annotators, "annotator")
        value = np.asarray(value, dtype=np.float64)
        if not np.isfinite(value).all():
            row = int(np.flatnonzero(~np.isfinite(value))[0])
            raise DataError(f"row {row + 1}: {value[row]} is not a number to work with")
        order = np.lexsort((value, annotator, item))
        return cls(
            index=index_of(item[order], len(items)),
            annotator=annotator[order],
            value=value[order],
            items=items,
            annotators=annotators,
            columns={name: np.asarray(values)[order] for name, values in columns.items()},
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Numbers):
            return NotImplemented
        return self._same(other) and np.array_equal(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        span = f"; {self.value.min():g} to {self.value.max():g}" if len(self) else ""
        return (
            f"<Numbers: {len(self)} answers by {self.n_annotators} annotators "
            f"on {self.n_items} items{span}>"
        )
