"""Sets of options: any number of classes at once, also none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from ..base.arrays import Array, Codes, Floats, Integers, count_up
from ..base.names import Names, as_names, coded, text
from ..base.tables import Table
from .annotations import Annotations
from .base import SPECIAL, Candidates, Ragged, coded_rows

if TYPE_CHECKING:
    from scipy import sparse

MARK = "|"  # between the options of one answer
_BETWEEN = re.compile(rf"(?<!\\){re.escape(MARK)}")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sets(Ragged):
    """Options that annotators chose for items; an empty answer chooses none.

    Examples
    --------
    >>> Sets.from_values(["a", "a", "b"], ["x", "y", "x"], [["cat", "dog"], ["cat"], []])
    <sets: 2 items, 2 annotators, 2 options, 1.0 chosen on average; 33 % of answers are empty>
    """

    kind: ClassVar[str] = "sets"
    value_key: ClassVar[str] = "labels"
    element: ClassVar[str] = "options"
    by_element: ClassVar[tuple[str, ...]] = ("option",)
    coded_by: ClassVar[dict[str, str]] = {"option": "options"}

    option: Codes  # (element), in order within an answer
    options: Names

    @classmethod
    def from_values(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        values: Sequence[Any],
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        options: Iterable[Any] | None = None,
    ) -> Self:
        option_lists = [sorted({text(option) for option in value}) for value in values]
        option, names = coded([name for value in option_lists for name in value], options, "option")
        starts = np.concatenate(
            [[0], np.cumsum([len(value) for value in option_lists], dtype=np.int64)]
        )
        answer = np.repeat(np.arange(len(option_lists)), np.diff(starts))
        rows = coded_rows(item, annotator, items, annotators)
        ordered = option[np.lexsort((option, answer))]
        return cls.from_codes(**rows, starts=starts, option=ordered, options=names)

    def values(self) -> list[list[str]]:
        names = self.options[self.option].tolist()
        starts = self.starts.tolist()
        return [names[a:b] for a, b in pairwise(starts)]

    def long_columns(self) -> dict[str, Array | list[Any]]:
        """Return options joined by `|`; as lists in JSON where that could be read otherwise."""
        values = self.values()
        names = self.options.tolist()
        plain = not any(SPECIAL - {" "} & set(name) or name != name.strip() for name in names)
        if plain and int(self.sizes.max(initial=0)) > 1:
            return {"labels": [join_options(value) or None for value in values]}
        lists = [json.dumps(value, ensure_ascii=False) if value else None for value in values]
        return {"labels": lists}

    @property
    def n_options(self) -> int:
        """Number of options, also those nobody chose."""
        return len(self.options)

    @property
    def counts(self) -> str:
        mean = self.n_elements / max(len(self), 1)
        return f"{self.n_options} options, {mean:.1f} chosen on average"

    def chosen(self) -> sparse.csr_array[Any, Any]:
        """Return which options an answer holds, as zeros and ones: (answer, option)."""
        from scipy import sparse  # slow to import, and every verb looks for sets

        entries = np.ones(self.n_elements)
        shape = (len(self), self.n_options)
        return sparse.csr_array((entries, self.option.astype(np.int64), self.starts), shape=shape)

    def distance(
        self, first: Integers, second: Integers, measure: Literal["masi", "jaccard"] = "masi"
    ) -> Floats:
        """Return one minus the MASI or Jaccard similarity of pairs; two empty sets are the same.

        R. Passonneau. Measuring agreement on set-valued items (MASI) for semantic and pragmatic
        annotation. LREC, 2006.
        """
        holds = self.chosen()
        shared = np.asarray(holds[first].multiply(holds[second]).sum(axis=1)).ravel()
        n_first, n_second = self.sizes[first], self.sizes[second]
        either = n_first + n_second - shared
        similar = np.divide(shared, either, out=np.ones(len(shared)), where=either > 0)
        if measure == "masi":
            inside = shared == np.minimum(n_first, n_second)
            similar = similar * np.where(shared == either, 1, np.where(inside, 2 / 3, 1 / 3))
        return 1 - similar

    def candidates(self) -> Candidates:
        """Return every option of every item as a question with the answers no and yes."""
        n_options = self.n_options
        item = np.repeat(np.arange(self.n_items), n_options)
        members = self.item[self.answer].astype(np.int64) * n_options + self.option
        table = np.zeros((len(self), n_options), dtype=np.int64)
        table[self.answer, self.option] = 1
        cell = np.repeat(self.item.astype(np.int64) * n_options, n_options)
        cell += count_up(np.full(len(self), n_options))
        names = [f"{i}{MARK}{o}" for i in self.items.tolist() for o in self.options.tolist()]
        annotations = Annotations.from_codes(
            cell,
            np.repeat(self.annotator, n_options),
            table.ravel(),
            items=as_names(names),
            annotators=self.annotators,
            classes=as_names(["no", "yes"]),
        )
        return Candidates(annotations, item, members)

    def as_table(self) -> tuple[dict[str, Array], Integers]:
        labels = as_names([join_options(value) for value in self.values()])
        return {"item": self.items[self.item], "labels": labels}, np.arange(len(self))

    def as_answers(self, table: Table) -> Self:
        values = [split_options(labels) for labels in table["labels"].tolist()]
        answers = self.from_values(
            table["item"], ["consensus"] * len(values), values, items=self.items,
            options=self.options,
        )  # fmt: skip
        return replace(answers, columns={})


def join_options(options: Sequence[str]) -> str:
    r"""Return options in one text.

    >>> join_options(["cat", "dog|wolf"])
    'cat|dog\\|wolf'
    """
    return MARK.join(option.replace(MARK, f"\\{MARK}") for option in options)


def split_options(joined: str) -> list[str]:
    r"""Return the options in a text.

    >>> split_options(r"cat|dog\|wolf"), split_options("")
    (['cat', 'dog|wolf'], [])
    """
    return (
        [option.replace(f"\\{MARK}", MARK) for option in _BETWEEN.split(joined)] if joined else []
    )
