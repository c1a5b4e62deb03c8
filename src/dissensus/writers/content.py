"""What is to be written: annotations, numbers or a result, with gold and texts beside them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from .._names import Names
from ..annotations import Annotations
from ..answers.numbers import Numbers
from ..readers.exports import MARK, Kind
from ..readers.reading import Reading
from ..result import Aggregation, Estimation

__all__ = ["Content", "What", "chosen_options", "column", "content_of", "gather", "table_of"]

What = Annotations | Numbers | Aggregation | Estimation


@dataclass(frozen=True, eq=False)
class Content:
    """Everything that a format might hold.

    Attributes
    ----------
    what
        Annotations, numbers, or a result.
    gold
        Known classes, item → label.
    texts
        What the items are, item → text.
    question
        What was asked; a name for formats that want one.
    kind
        Whether a label is one class, several, one of classes in order, or a number.
    """

    what: What
    gold: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    question: str = "label"
    kind: Kind = "single"

    @property
    def annotations(self) -> Annotations | Numbers:
        """The annotations or numbers that it speaks of."""
        return self.what if isinstance(self.what, (Annotations, Numbers)) else self.what.annotations

    @property
    def is_result(self) -> bool:
        """Whether a method made it."""
        return isinstance(self.what, (Aggregation, Estimation))

    @property
    def method(self) -> str:
        """The method of a result; nothing for what people said."""
        return self.what.method if isinstance(self.what, (Aggregation, Estimation)) else ""

    @cached_property
    def answers(self) -> list[Any]:
        """Every answer by name, or as a number: (annotation)."""
        if isinstance(self.annotations, Annotations):
            return gather(self.annotations.classes, self.annotations.label).to_list()
        return self.annotations.value.tolist()

    @cached_property
    def annotators(self) -> list[str]:
        """Who gave every answer: (annotation)."""
        return gather(self.annotations.annotators, self.annotations.annotator).to_list()

    def items(self) -> Iterator[tuple[str, range]]:
        """Yield every item with the places of its answers."""
        index = self.annotations.index.tolist()
        for position, item in enumerate(self.annotations.items.tolist()):
            yield item, range(index[position], index[position + 1])

    def verdicts(self) -> Iterator[tuple[str, Any, float | None]]:
        """Yield every item with its label in a result, and how sure it is; `None` if undecided."""
        what = self.what
        if isinstance(what, Aggregation):
            yield from zip(
                what.annotations.items.tolist(),
                what.labels.tolist(),
                what.confidence.tolist(),
                strict=True,
            )
        elif isinstance(what, Estimation):
            for item, value in zip(
                what.annotations.items.tolist(), what.value.tolist(), strict=True
            ):
                yield item, None if math.isnan(value) else value, None

    def column(self, name: str) -> list[Any] | None:
        """Return a carried column; nothing where there is none."""
        values = self.annotations.columns.get(name)
        return None if values is None else column(values).to_list()

    def by_model(self) -> list[bool]:
        """Return whether a model gave the answer, where that is known: (annotation)."""
        source = self.column("source")
        return (
            [False] * len(self.annotations)
            if source is None
            else [one == "model" for one in source]
        )


def content_of(
    what: What | Reading,
    gold: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | pl.DataFrame | None = None,
    beside: Reading | None = None,
) -> Content:
    """Return what is to be written, with what a reading found beside it."""
    if isinstance(what, Reading):
        return Content(
            what.annotations,
            gold if gold is not None else what.gold,
            _texts(texts if texts is not None else what.texts),
            what.question or "label",
            what.kind,
        )
    kind: Kind = "numeric" if isinstance(what, (Numbers, Estimation)) else "single"
    if beside is None:
        return Content(what, gold or {}, _texts(texts), kind=kind)
    found = content_of(beside, gold, texts)
    return replace(found, what=what, kind=kind if kind == "numeric" else found.kind)


def _texts(texts: Mapping[str, str] | pl.DataFrame | None) -> Mapping[str, str]:
    if isinstance(texts, pl.DataFrame):
        pairs = zip(texts["item"].to_list(), texts["text"].to_list(), strict=True)
        return {str(item): text for item, text in pairs if text is not None}
    return texts or {}


def chosen_options(label: str) -> list[str]:
    r"""Return the options in a label that holds several, `|` between them.

    >>> chosen_options(r"cat|dog\|wolf")
    ['cat', 'dog|wolf']
    """
    if label == "(none)":
        return []
    return [one.replace(f"\\{MARK}", MARK) for one in _BETWEEN.split(label)]


_BETWEEN = re.compile(rf"(?<!\\){re.escape(MARK)}")


def table_of(what: What) -> pl.DataFrame:
    """Return annotations, numbers or a result as a long dataframe."""
    if isinstance(what, Estimation):
        table = {"item": what.annotations.items, "label": what.value, "deviation": what.deviation}
        frame = pl.DataFrame({name: column(values) for name, values in table.items()})
        return frame.with_columns(pl.col("label", "deviation").fill_nan(None))
    if isinstance(what, Aggregation):
        table = {
            "item": what.annotations.items,
            "label": what.labels,
            "confidence": what.confidence,
        }
        posteriors = {
            f"p:{name}": what.posterior[:, position]
            for position, name in enumerate(what.classes.tolist())
        }
        return pl.DataFrame({name: column(values) for name, values in (table | posteriors).items()})
    answers = (
        gather(what.classes, what.label) if isinstance(what, Annotations) else pl.Series(what.value)
    )
    return pl.DataFrame(
        {
            "item": gather(what.items, what.item),
            "annotator": gather(what.annotators, what.annotator),
            "label": answers,
            **{name: column(values) for name, values in what.columns.items()},
        }
    )


def gather(names: Names, codes: Any) -> pl.Series:
    """Return the names of codes as a column."""
    return pl.Series(names.tolist(), dtype=pl.String).gather(pl.Series(codes))


def column(values: np.ndarray[Any, Any]) -> pl.Series:
    """Return an array as a column."""
    return pl.Series(values.tolist() if values.dtype.kind == "T" else values)
