"""What is to be written: labels or a result with gold and texts, or answers of other kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import polars as pl

from ..answers import Answers
from ..answers.annotations import Annotations
from ..answers.numbers import Numbers
from ..base.arrays import Array
from ..base.names import text
from ..base.storage import as_plain
from ..base.tables import as_column, gather
from ..errors import DataError
from ..result import Result
from . import as_truth
from .format import Kind
from .frames import as_frame
from .reading import Reading, examine

Writable = Annotations | Numbers | Result
MODEL = "model:"  # prefix of models among annotators
ONE_SCORE = "only the probability of the label itself is written, not those of other classes"


@dataclass(frozen=True)
class Card:
    """What a card has beside the data.

    Attributes
    ----------
    license
        Its identifier, such as cc-by-4.0; left out if empty.
    agreement
        Sentences about the agreement of annotators.
    pseudonyms
        Whether the names of annotators are pseudonyms.
    """

    license: str = ""
    agreement: Sequence[str] = ()
    pseudonyms: bool = False


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
        Whether a label is one class, a set of them, one of classes in order, or a number.
    card
        What a card has beside the data, for formats with one.
    """

    what: Any
    gold: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    question: str = "label"
    kind: Kind = "single"
    card: Card = field(default_factory=Card)

    @property
    def annotations(self) -> Annotations | Numbers:
        """The annotations or numbers, also those of a result."""
        return self.what.answers if self.is_result else self.what

    @property
    def is_result(self) -> bool:
        """Whether this is the result of a method."""
        return is_aggregation(self.what)

    @property
    def method(self) -> str:
        """The method of a result; empty for annotations."""
        return str(self.what.method) if self.is_result else ""

    @property
    def labels_of_classes(self) -> Annotations | None:
        """The annotations where these are classes; nothing for numbers."""
        annotations: Any = self.annotations
        return annotations if annotations.kind == Annotations.kind else None

    @cached_property
    def answers(self) -> list[Any]:
        """Every answer by name, or as a number: (annotation)."""
        return list(self.annotations.answer_column().to_list())

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


def is_aggregation(source: Any) -> bool:
    """Return whether this is a result that says what is true of every item."""
    return isinstance(source, Result) and hasattr(source, "predictions")


def holds_labels(source: Any) -> bool:
    """Return whether these are classes or numbers, or a result that says what is true of items."""
    return is_aggregation(source) or isinstance(source, (Annotations, Numbers))


def content_of(
    source: Writable | Reading | Any,
    gold: Any = None,
    texts: Mapping[str, str] | Any = None,
    reading: Reading | None = None,
) -> Content:
    """Return what is to be written, with the question, gold and texts of a reading."""
    if not (holds_labels(source) or isinstance(source, Reading)):
        source = examine(source, kind="single")
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


class ConsensusLike(Protocol):
    """The result of a consensus."""

    @property
    def method(self) -> str:
        """The method."""

    @property
    def items(self) -> Mapping[str, Array]:
        """What is true of the items, by column."""

    @property
    def truth(self) -> Answers:
        """The same as answers of one annotator."""


@dataclass(frozen=True, eq=False)
class AnswerContent:
    """Answers with everything that a format might hold.

    Attributes
    ----------
    answers
        The answers; of a consensus, those of one annotator.
    texts
        Texts of the items, or links to their images.
    sizes
        Height and width of images: item → (height, width).
    method
        The method of a consensus; empty for answers.
    scores
        The confidence of a consensus, by item and the coordinates of the mark.
    """

    answers: Answers
    texts: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    method: str = ""
    scores: Mapping[tuple[Any, ...], float] = field(default_factory=dict)

    def score(self, item: str, mark: Mapping[str, Any] | None = None) -> float | None:
        """Return the confidence of a mark, or of an item's value."""
        place = () if mark is None else tuple(v for name, v in mark.items() if name != "label")
        return self.scores.get((item, *place))

    def size(self, item: str) -> tuple[int, int]:
        """Return height and width of an image; refuse one whose size is unknown."""
        if item not in self.sizes:
            raise DataError(f"image {item!r} has no size; give the height and width of images")
        return self.sizes[item]

    def by_item(self) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
        """Yield every item with its annotators and their values."""
        values, index = self.answers.values(), self.answers.index.tolist()
        names = self.answers.annotators[self.answers.annotator].tolist()
        for position, item in enumerate(self.answers.items.tolist()):
            rows = range(index[position], index[position + 1])
            yield item, [(names[row], values[row]) for row in rows]


def answer_content_of(
    source: Answers | ConsensusLike,
    texts: Mapping[str, str] | pl.DataFrame | None,
    sizes: Mapping[str, tuple[int, int]] | None,
) -> AnswerContent:
    """Return answers or a consensus with texts, and the sizes of images that are known."""
    if isinstance(texts, pl.DataFrame):
        texts = dict(texts.select("item", "text").drop_nulls("text").iter_rows())
    answers = source if isinstance(source, Answers) else source.truth
    all_sizes = _own_sizes(answers) | dict(sizes or {})
    if isinstance(source, Answers):
        return AnswerContent(source, texts or {}, all_sizes)
    return AnswerContent(
        answers,
        texts=texts or {},
        sizes=all_sizes,
        method=source.method,
        scores=_scores(answers, source.items),
    )


def _own_sizes(answers: Answers) -> dict[str, tuple[int, int]]:
    """Return the sizes of images that answers have with them."""
    size = getattr(answers, "size", None)
    if size is None:
        return {}
    pairs = np.asarray(size)[:, ::-1] if answers.kind == "points" else np.asarray(size)
    sizes = zip(answers.items.tolist(), pairs.tolist(), strict=True)
    return {item: (int(h), int(w)) for item, (h, w) in sizes if h == h and w == w}


def _scores(answers: Answers, items: Mapping[str, Array]) -> dict[tuple[Any, ...], float]:
    """Return the confidence of every row of a consensus by item and coordinates."""
    if "confidence" not in items or "item" not in items:
        return {}
    place = [items[name].tolist() for name in getattr(answers, "coordinates", ())]
    keys = zip(items["item"].tolist(), *place, strict=True)
    return dict(zip(keys, items["confidence"].tolist(), strict=True))


def is_id(name: Any) -> bool:
    """Return whether a name is a whole number as Label Studio numbers things."""
    return isinstance(name, str) and name.isascii() and name.isdigit() and text(int(name)) == name
