"""What is to be written: annotations, numbers or a result, with gold and texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..answers.annotations import Annotations
from ..answers.numbers import Numbers
from ..base.names import text
from ..base.storage import as_plain
from ..base.tables import as_column, gather
from ..result import Result
from . import as_truth
from .format import MARK, NONE, Kind
from .frames import as_frame
from .reading import Reading, examine

_BETWEEN = re.compile(rf"(?<!\\){re.escape(MARK)}")
Writable = Annotations | Numbers | Result


@dataclass(frozen=True, eq=False)
class Content:
    """Annotations or a result with everything that a format might hold.

    Attributes
    ----------
    what
        Annotations, numbers, or a result.
    gold
        Known classes, item → label.
    texts
        Texts of the items, item → text.
    question
        The question; a name for formats that need one.
    kind
        Whether a label is one class, several, one of classes in order, or a number.
    """

    what: Any
    gold: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    question: str = "label"
    kind: Kind = "single"

    @property
    def annotations(self) -> Annotations | Numbers:
        """The annotations or numbers, also those of a result."""
        return self.what.answers if self.is_result else self.what

    @property
    def is_result(self) -> bool:
        """Whether this is the result of a method."""
        return is_fitted(self.what)

    @property
    def method(self) -> str:
        """The method of a result; empty for annotations."""
        return str(self.what.method) if self.is_result else ""

    @cached_property
    def answers(self) -> list[Any]:
        """Every answer by name, or as a number: (annotation)."""
        if isinstance(self.annotations, Annotations):
            return gather(self.annotations.classes, self.annotations.label).to_list()
        return self.annotations.value.tolist()

    @cached_property
    def annotators(self) -> list[str]:
        """The annotator of every answer: (annotation)."""
        return gather(self.annotations.annotators, self.annotations.annotator).to_list()

    def items(self) -> Iterator[tuple[str, range]]:
        """Yield every item with the positions of its answers."""
        index = self.annotations.index.tolist()
        for position, item in enumerate(self.annotations.items.tolist()):
            yield item, range(index[position], index[position + 1])

    def labels(self) -> Iterator[tuple[str, Any, float | None]]:
        """Yield every item of a result with its label, `None` if undecided, and its confidence.

        The confidence is `None` where it cannot be told.
        """
        table = self.what.tables["items"]
        label, confidence = as_plain(table["label"]), [None] * len(table["label"])
        if "confidence" in table:
            confidence = as_plain(table["confidence"])
        yield from zip(table["item"].tolist(), label, confidence, strict=True)

    def column(self, name: str) -> list[Any] | None:
        """Return a carried column; nothing where there is none."""
        values = self.annotations.columns.get(name)
        return None if values is None else as_column(values).to_list()

    @cached_property
    def by_model(self) -> list[bool]:
        """Whether a model gave the answer, where that is known: (annotation)."""
        source = self.column("source")
        return [False] * len(self.annotations) if source is None else [s == "model" for s in source]

    @property
    def people(self) -> list[str]:
        """The annotators that are not models."""
        pairs = zip(self.annotators, self.by_model, strict=True)
        models = {annotator for annotator, is_model in pairs if is_model}
        return [name for name in self.annotations.annotators.tolist() if name not in models]


def is_fitted(what: Any) -> bool:
    """Return whether this is the result of a method, which says what is true of the items."""
    return isinstance(what, Result) and hasattr(type(what), "truth")


def content_of(
    source: Writable | Reading | Any,
    gold: Any = None,
    texts: Mapping[str, str] | Any = None,
    reading: Reading | None = None,
) -> Content:
    """Return what is to be written, with the question, gold and texts of a reading."""
    if not isinstance(source, (Annotations, Numbers, Result, Reading)):
        source = examine(source)
    gold = as_truth(gold)
    if texts is None and isinstance(source, Reading):
        texts = source.texts
    if texts is not None and not isinstance(texts, Mapping):
        texts = dict(as_frame(texts).select("item", "text").drop_nulls("text").iter_rows())
    if isinstance(source, Reading):
        return Content(
            source.annotations,
            gold=gold if gold is not None else source.gold,
            texts=texts or {},
            question=source.question or "label",
            kind=source.kind,
        )
    content = Content(source, gold=gold or {}, texts=texts or {})
    kind: Kind = "numeric" if content.annotations.kind == "numbers" else "single"
    if reading is None:
        return replace(content, kind=kind)
    content = content_of(reading, gold, texts)
    return replace(content, what=source, kind=kind if kind == "numeric" else content.kind)


def chosen_options(label: str) -> list[str]:
    r"""Return the options in a label that holds several, `|` between them.

    >>> chosen_options(r"cat|dog\|wolf")
    ['cat', 'dog|wolf']
    """
    if label == NONE:
        return []
    return [option.replace(f"\\{MARK}", MARK) for option in _BETWEEN.split(label)]


def is_id(name: Any) -> bool:
    """Return whether a name is a whole number as Label Studio numbers things."""
    return isinstance(name, str) and name.isascii() and name.isdigit() and text(int(name)) == name
