"""Texts: transcripts, translations and other free answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ..base.names import Names, as_names, code
from ..base.arrays import Array, Floats, Integers
from ..base.tables import Table
from .base import Answers, coded_rows
from ._edits import edit_distances, normalized

Unit = Literal["word", "character"]
_MARKS = re.compile(r"[^\w']|_|(?<!\w)'|'(?!\w)")  # what does not count in a word
_SPACED = 0.2  # share of texts with a blank below which characters are the units
_LONG = 12  # characters of a text that has blanks where a language has them


class Tokens(NamedTuple):
    """Texts as sequences of words or characters."""

    starts: Integers  # (answer + 1)
    word: Integers  # (token): a word in lower case without punctuation
    spelling: Integers  # (token)
    spellings: Names  # as they were written
    unit: Unit

    @property
    def sizes(self) -> Integers:
        """Number of tokens of every text."""
        return np.diff(self.starts)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Texts(Answers):
    """Texts that annotators wrote for items; an empty text is an empty answer.

    Examples
    --------
    >>> texts = Texts.from_values(["a"] * 3, "xyz", ["the cat sat", "The cat sat.", "a cat"])
    >>> texts.distance(np.array([0, 0]), np.array([1, 2])).round(2).tolist()
    [0.0, 0.67]
    """

    kind: ClassVar[str] = "texts"
    value_key: ClassVar[str] = "text"
    by_answer: ClassVar[tuple[str, ...]] = ("text",)

    text: Names  # (answer)

    @classmethod
    def from_values(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        values: Sequence[Any],
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Self:
        rows = coded_rows(item, annotator, items, annotators)
        return cls.from_codes(**rows, text=as_names(["" if v is None else str(v) for v in values]))

    def values(self) -> list[str]:
        return self.text.tolist()

    @property
    def empty(self) -> npt.NDArray[np.bool_]:
        return self.tokens.sizes == 0

    @property
    def counts(self) -> str:
        unit = "words" if self.tokens.unit == "word" else "characters"
        return f"{self.tokens.sizes.mean() if len(self) else 0:.1f} {unit} on average"

    @cached_property
    def tokens(self) -> Tokens:
        """The texts as words; as characters where a language writes no blanks."""
        texts = self.text.tolist()
        long = [text for text in texts if len(text) > _LONG]
        spaced = np.mean([" " in text.strip() for text in long]) if long else 1.0
        return tokens_of(texts, "word" if spaced >= _SPACED else "character")

    def distance(self, first: Integers, second: Integers) -> Floats:
        """Return the edit distance of words over the longer length."""
        size = self.tokens.sizes
        return normalized(self.edits(first, second), size[first], size[second])

    def edits(self, first: Integers, second: Integers) -> Integers:
        """Return how many words have to be changed to make one text of a pair the other."""
        return edit_distances(self.tokens.word, self.tokens.starts, first, second)

    def as_table(self) -> tuple[dict[str, Array], Integers]:
        return {"item": self.items[self.item], "text": self.text}, np.arange(len(self))

    def as_answers(self, table: Table) -> Self:
        who = ["consensus"] * len(table["item"])
        return self.from_values(table["item"], who, table["text"].tolist(), items=self.items)


def tokens_of(texts: Sequence[str], unit: Unit = "word") -> Tokens:
    """Return texts as sequences of words, or of characters."""
    cut = [text.split() if unit == "word" else list(text) for text in texts]
    plain_of = {one: plain_word(one) for text in cut for one in text}
    written = [[one for one in text if plain_of[one]] for text in cut]
    flat = [one for text in written for one in text]
    spelling, spellings = code(flat) if flat else (np.zeros(0, dtype=np.uint8), as_names([]))
    plain = code([plain_of[one] for one in spellings.tolist()])[0]
    starts = np.concatenate([[0], np.cumsum([len(text) for text in written], dtype=np.int64)])
    written_as = spelling.astype(np.int64)
    word = plain.astype(np.int64)[written_as] if len(flat) else written_as
    return Tokens(starts, word, written_as, spellings, unit)


def plain_word(written: str) -> str:
    """Return a word in lower case without punctuation.

    >>> plain_word("“Don’t!”")
    "don't"
    """
    return _MARKS.sub("", written.casefold().replace("’", "'"))
