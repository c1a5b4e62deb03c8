"""Texts: transcripts, translations and other free answers, compared word by word.

Their distance is an edit distance of words, or of characters where a language writes no blanks. It
is computed for many pairs of sequences at once, in padded batches of like length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ..base.arrays import Array, Floats, Integers, count_up
from ..base.names import Names, as_names, code
from ..base.tables import Table
from .base import Answers, coded_rows

_CELLS = 2**22  # of a batch

Unit = Literal["word", "character"]
_MARKS = re.compile(r"[^\w']|_|(?<!\w)'|'(?!\w)")  # what does not count in a word
_SPACED = 0.2  # share of texts with a blank below which characters are the units
_LONG = 12  # characters of a text that has blanks where a language has them


def edit_distances(
    symbol: Integers, starts: Integers, first: Integers, second: Integers
) -> Integers:
    """Return how many symbols must be inserted, deleted or replaced, for pairs of sequences.

    Sequence s has the symbols at starts[s]:starts[s + 1].

    >>> symbol, starts = np.array([1, 2, 3, 1, 3]), np.array([0, 3, 5])
    >>> edit_distances(symbol, starts, np.array([0, 0]), np.array([1, 0])).tolist()
    [1, 0]
    """
    size = np.diff(starts)
    swap = size[first] > size[second]  # the shorter has the rows
    shorter, longer = np.where(swap, second, first), np.where(swap, first, second)
    out = np.empty(len(first), dtype=np.int64)
    order = np.lexsort((size[shorter], size[longer]))
    position = 0
    while position < len(order):
        count = max(1, _CELLS // (int(size[longer[order[position]]]) + 8))
        batch = order[position : position + count]
        longest = int(size[longer[batch[-1]]])
        if longest > 2 * int(size[longer[batch[0]]]) + 8:  # not much longer than the shortest
            count = int(
                np.searchsorted(size[longer[batch]], 2 * size[longer[batch[0]]] + 8, "right")
            )
            batch = batch[: max(count, 1)]
        out[batch] = _batch(symbol, starts, shorter[batch], longer[batch])
        position += len(batch)
    return out


def padded(symbol: Integers, starts: Integers, rows: Integers, blank: int = -1) -> Integers:
    """Return sequences as rows of a table, blank after their end: (sequence, place)."""
    size = starts[rows + 1] - starts[rows]
    table = np.full((len(rows), int(size.max(initial=0))), blank, dtype=np.int64)
    place = count_up(size)
    at = np.repeat(starts[rows], size) + place
    table[np.repeat(np.arange(len(rows)), size), place] = symbol[at]
    return table


def _batch(symbol: Integers, starts: Integers, shorter: Integers, longer: Integers) -> Integers:
    a, b = padded(symbol, starts, shorter, -1), padded(symbol, starts, longer, -2)
    n_rows, width = starts[shorter + 1] - starts[shorter], starts[longer + 1] - starts[longer]
    column = np.arange(b.shape[1] + 1)
    row = np.tile(column, (len(a), 1))  # (pair, place): the distance of prefixes
    out = row[np.arange(len(a)), width].copy()
    for i in range(a.shape[1]):
        new = np.empty_like(row)
        new[:, 0] = i + 1
        np.minimum(row[:, :-1] + (a[:, [i]] != b), row[:, 1:] + 1, out=new[:, 1:])
        # An insertion costs one for every place: a running minimum of the rest.
        row = np.minimum.accumulate(new - column, axis=1) + column
        ended = n_rows == i + 1
        out[ended] = row[ended, width[ended]]
    return out


def normalized(edits: Integers, first: Integers, second: Integers) -> Floats:
    """Return edits divided by the longer of two lengths, 0 where both are empty."""
    longer = np.maximum(first, second)
    return np.divide(edits, longer, out=np.zeros(len(edits)), where=longer > 0)


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
        annotator = ["consensus"] * len(table["item"])
        return self.from_values(table["item"], annotator, table["text"].tolist(), items=self.items)


def tokens_of(texts: Sequence[str], unit: Unit = "word") -> Tokens:
    """Return texts as sequences of words, or of characters."""
    cut = [text.split() if unit == "word" else list(text) for text in texts]
    plain_of = {word: plain_word(word) for text in cut for word in text}
    written = [[token for token in text if plain_of[token]] for text in cut]
    flat = [token for text in written for token in text]
    spelling, spellings = code(flat) if flat else (np.zeros(0, dtype=np.uint8), as_names([]))
    plain = code([plain_of[token] for token in spellings.tolist()])[0]
    starts = np.concatenate([[0], np.cumsum([len(text) for text in written], dtype=np.int64)])
    written_as = spelling.astype(np.int64)
    word = plain.astype(np.int64)[written_as] if len(flat) else written_as
    return Tokens(starts=starts, word=word, spelling=written_as, spellings=spellings, unit=unit)


def plain_word(written: str) -> str:
    """Return a word in lower case without punctuation.

    >>> plain_word("“Don’t!”")
    "don't"
    """
    return _MARKS.sub("", written.casefold().replace("’", "'"))
