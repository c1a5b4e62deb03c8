"""Rankings and comparisons: which of several things is better, with ties.

An answer lists things in the order in which they were shown, with a rank for each: 1 is best, equal
ranks are ties. A comparison is a ranking of two. The item is the question.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ..base.arrays import Array, Codes, Floats, Integers, count_up
from ..base.names import Names, as_names, coded
from ..base.tables import Table
from ..errors import DataError
from .base import SPECIAL, Ragged, coded_rows

TIE = "tie"
TIES = ("tie", "equal", "same", "both", "neither", "draw")  # names of a tie in comparisons
_PIECE = 2**20  # pairs of answers at a time


class Pairs(NamedTuple):
    """Rankings as comparisons of two things, the one that was shown first on the left.

    Where the right thing is never better, things are listed by rank, and not as they were shown.
    """

    answer: Integers  # (pair)
    left: Integers  # (pair): a thing
    right: Integers  # (pair)
    outcome: Integers  # (pair): 0 left is better, 1 right is better, 2 a tie


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rankings(Ragged):
    """Things that annotators ranked, best first, with ties; a comparison ranks two.

    Examples
    --------
    >>> Rankings.from_comparisons("pq", "xx", left="ab", right="bc", winner=["a", "tie"])
    <rankings: 2 items, 1 annotators, 3 things, 2.0 ranked at a time>
    >>> Rankings.from_values(["p"], ["x"], [["c", "a", "b"]]).pairs().outcome.tolist()
    [0, 0, 0]
    """

    kind: ClassVar[str] = "rankings"
    value_key: ClassVar[str] = "ranking"
    element: ClassVar[str] = "things"
    by_element: ClassVar[tuple[str, ...]] = ("thing", "rank")
    coded_by: ClassVar[dict[str, str]] = {"thing": "things"}

    thing: Codes  # (element), in the order in which they were shown
    rank: Integers  # (element): 1 is best
    things: Names

    @classmethod
    def from_values(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        values: Sequence[Any],
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        things: Iterable[Any] | None = None,
    ) -> Self:
        """Return rankings from lists of things, the best first.

        An entry may be a list of tied things, or `{"value": thing, "rank": 1}`, in the order in
        which things were shown.
        """
        rows = [_ranked(value, position) for position, value in enumerate(values, 1)]
        names = [name for row in rows for name, _ in row]
        thing, thing_names = coded(names, things, "thing")
        return cls.from_codes(
            **coded_rows(item, annotator, items, annotators),
            starts=np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]),
            thing=thing,
            rank=np.array([rank for row in rows for _, rank in row], dtype=np.int64),
            things=thing_names,
        )

    @classmethod
    def from_comparisons(
        cls,
        item: Sequence[Any] | Array,
        annotator: Sequence[Any] | Array,
        left: Sequence[Any] | Array,
        right: Sequence[Any] | Array,
        winner: Sequence[Any] | Array,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Self:
        """Return comparisons; the winner is one of both, `left`, `right`, or `tie`."""
        left, right, verdict = as_names(left), as_names(right), as_names(winner)
        lower = np.array([name.lower() for name in verdict.tolist()], dtype=object)
        first = (verdict == left) | ((lower == "left") & (verdict != right))
        second = (verdict == right) | ((lower == "right") & (verdict != left))
        tied = np.isin(lower, as_names(TIES)) & ~first & ~second
        wrong = np.flatnonzero(~(first | second | tied) | (left == right))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"row {row + 1}: the winner {verdict[row]!r} is neither {left[row]!r} nor "
                f"{right[row]!r} nor a tie"
            )
        shown_things = np.stack([left, right], axis=1).ravel()
        rank = np.stack([1 + second, 1 + first], axis=1).ravel()
        thing, things = coded(shown_things, None, "thing")
        return cls.from_codes(
            **coded_rows(item, annotator, items, annotators),
            starts=2 * np.arange(len(left) + 1),
            thing=thing,
            rank=rank.astype(np.int64),
            things=things,
        )

    def values(self) -> list[list[dict[str, Any]]]:
        names, ranks = self.things[self.thing].tolist(), self.rank.tolist()
        entries = [{"value": name, "rank": rank} for name, rank in zip(names, ranks, strict=True)]
        return [entries[a:b] for a, b in pairwise(self.starts.tolist())]

    def long_columns(self) -> dict[str, Array | list[Any]]:
        """Return both sides and the winner of comparisons; rankings best first."""
        values = self.values()
        if set(self.sizes.tolist()) <= {0, 2}:
            sides = [[entry["value"] for entry in value] or [None, None] for value in values]
            winner = [_winner(value) for value in values]
            return {"left": [s[0] for s in sides], "right": [s[1] for s in sides], "winner": winner}
        special = any(SPECIAL & set(name) for name in self.things.tolist())
        texts: list[str | None] = []
        for value in values:
            in_order = [entry["rank"] for entry in value] == list(range(1, len(value) + 1))
            if not value:
                texts.append(None)
            elif special or not in_order or len(value) == 1:
                texts.append(json.dumps(value, ensure_ascii=False))
            else:
                texts.append(" ".join(entry["value"] for entry in value))
        return {"ranking": texts}

    @property
    def n_things(self) -> int:
        """Number of things, also those nobody ranked."""
        return len(self.things)

    @property
    def counts(self) -> str:
        mean = self.n_elements / max(len(self), 1)
        return f"{self.n_things} things, {mean:.1f} ranked at a time"

    def pairs(self) -> Pairs:
        """Return all pairs of things within answers as comparisons."""
        after = np.repeat(self.starts[1:], self.sizes) - np.arange(self.n_elements) - 1
        left = np.repeat(np.arange(self.n_elements), after)
        right = left + 1 + count_up(after)
        better = np.sign(self.rank[left] - self.rank[right])
        outcome = np.where(better < 0, 0, np.where(better > 0, 1, 2))
        thing = self.thing.astype(np.int64)
        return Pairs(self.answer[left], thing[left], thing[right], outcome)

    def distance(self, first: Integers, second: Integers) -> Floats:
        """Return (1 - Kendall's tau-b) / 2 over the things that both ranked; 1/2 without any."""
        out = np.empty(len(first))
        for start in range(0, len(first), _PIECE):
            batch = slice(start, start + _PIECE)
            out[batch] = self._distance(np.asarray(first[batch]), np.asarray(second[batch]))
        return out

    def _distance(self, first: Integers, second: Integers) -> Floats:
        keys, ranks = [], []
        for rows in (first, second):
            size = self.sizes[rows]
            at = np.repeat(self.starts[rows], size) + count_up(size)
            key = np.repeat(np.arange(len(rows)), size) * self.n_things + self.thing[at]
            order = np.argsort(key, kind="stable")
            keys.append(key[order])
            ranks.append(self.rank[at][order])
        shared, row, column = np.intersect1d(
            keys[0], keys[1], assume_unique=True, return_indices=True
        )
        pair, left, right = shared // max(self.n_things, 1), ranks[0][row], ranks[1][column]
        size = np.bincount(pair, minlength=len(first))
        after = np.repeat(np.cumsum(size), size) - np.arange(len(pair)) - 1
        a = np.repeat(np.arange(len(pair)), after)
        b = a + 1 + count_up(after)
        signs = np.sign(left[a] - left[b]), np.sign(right[a] - right[b])
        total, n_mine, n_theirs = (
            np.bincount(pair[a], factor * two, len(first))
            for factor, two in ((signs[0], signs[1]), (signs[0], signs[0]), (signs[1], signs[1]))
        )
        scale = np.sqrt(n_mine * n_theirs)
        tau = np.divide(total, scale, out=np.zeros(len(first)), where=scale > 0)
        all_tied = (n_mine == 0) & (n_theirs == 0) & (size > 1)  # both find everything equal
        return np.where(all_tied, 0.0, (1 - tau) / 2)

    def as_table(self) -> tuple[dict[str, Array], Integers]:
        words = [_in_words(value) for value in self.values()]
        return {"item": self.items[self.item], "ranking": as_names(words)}, np.arange(len(self))

    def as_answers(self, table: Table) -> Self:
        """Return the order that the scores of things give on every item."""
        score = np.full(self.n_things, np.nan)
        position = {name: code for code, name in enumerate(self.things.tolist())}
        score[[position[name] for name in table["thing"].tolist()]] = table["score"]
        item = self.item[self.answer].astype(np.int64)
        cell = np.unique(item * self.n_things + self.thing)
        item, thing = cell // self.n_things, cell % self.n_things
        order = np.lexsort((thing, -score[thing], item))
        item, thing = item[order], thing[order]
        size = np.bincount(item, minlength=self.n_items)
        new = np.ones(len(thing), dtype=bool)
        new[1:] = (item[1:] != item[:-1]) | (score[thing[1:]] != score[thing[:-1]])
        tie_start = np.maximum.accumulate(np.where(new, np.arange(len(thing)), 0))  # of tied things
        rank = count_up(size)[tie_start] + 1
        ranked_items = np.flatnonzero(size > 0)
        return self.from_codes(
            ranked_items,
            np.zeros(len(ranked_items), dtype=np.int64),
            items=self.items,
            annotators=["consensus"],
            starts=np.concatenate([[0], np.cumsum(size[ranked_items])]),
            thing=thing,
            rank=rank,
            things=self.things,
        )


def _ranked(value: Any, position: int) -> list[tuple[Any, int]]:
    """Return things with their ranks; refuse one that is ranked twice."""
    row: list[tuple[Any, int]] = []
    if not isinstance(value, Iterable):
        raise DataError(f"row {position}: a ranking is a list, the best first, not {value!r}")
    for place, entry in enumerate(value, 1):
        if isinstance(entry, Mapping):
            name = entry.get("value", entry.get("thing"))
            row.append((name, int(entry.get("rank", place))))
        elif isinstance(entry, (list, tuple)):
            row += [(thing, place) for thing in entry]
        else:
            row.append((entry, place))
    names = [name for name, _ in row]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"row {position}: {twice[0]!r} is ranked twice")
    return row


def _winner(value: list[dict[str, Any]]) -> str | None:
    if not value:
        return None
    left, right = value
    if left["rank"] == right["rank"]:
        return TIE
    return "left" if left["rank"] < right["rank"] else "right"


def _in_words(value: list[dict[str, Any]]) -> str:
    """Return a ranking in one text: a > b = c."""
    ordered = sorted(value, key=lambda entry: entry["rank"])
    words = [str(entry["value"]) for entry in ordered[:1]]
    for previous, entry in pairwise(ordered):
        mark = " = " if entry["rank"] == previous["rank"] else " > "
        words.append(f"{mark}{entry['value']}")
    return "".join(words)
