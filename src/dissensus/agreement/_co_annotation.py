"""Where two annotators met: every two labels on one item, added up for pairs of annotators.

The cost is that of the pairs of labels that items have. Only pairs of annotators who met are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from .._relation import Array, Floats, Integers
from ..annotations import Annotations
from ..errors import OptionError
from ._statistics import own_votes
from .coefficients import corrected
from .differences import Difference

__all__ = ["Meetings"]

_MOST = 2**28  # pairs of labels that are looked at, and numbers that are held
_PIECE = 2**22
_DENSE = 2**24  # cells up to which pairs are looked up in a full table


class Meetings:
    """Every two labels of different annotators on one item, added up for pairs of annotators."""

    def __init__(
        self, annotations: Annotations, difference: Difference, min_overlap: int = 1
    ) -> None:
        self.annotations, self.difference, self.min_overlap = annotations, difference, min_overlap
        _, item, annotator = own_votes(annotations)
        key = item * max(annotations.n_annotators, 1) + annotator
        every = (
            annotations.item.astype(np.int64) * max(annotations.n_annotators, 1)
            + annotations.annotator
        )
        repeats = np.diff(np.append(np.searchsorted(every, key), len(annotations)))
        self._vote = np.repeat(1 / repeats, repeats)  # (annotation)
        size = annotations.labels_per_item.astype(np.int64)
        n_meetings = int((size * (size - 1) // 2).sum())
        if n_meetings > _MOST:
            raise OptionError(
                f"{n_meetings:,} pairs of labels are too many to look at two by two "
                f"(at most {_MOST:,}); keep fewer annotators, or take fleiss or alpha"
            )
        self.one, self.other = np.divmod(self._pairs, max(annotations.n_annotators, 1))
        if len(self.one) * annotations.n_classes > _MOST:
            raise OptionError(
                f"{len(self.one):,} pairs of annotators with {annotations.n_classes} classes do not fit "
                "into memory; keep fewer annotators, or take fleiss or alpha"
            )

    def _pieces(self) -> Iterator[tuple[Integers, Integers]]:
        """Yield the two annotations of every meeting, a piece of the items at a time."""
        index = self.annotations.index
        size = np.diff(index).astype(np.int64)
        before = np.concatenate([[0], np.cumsum(size * (size - 1) // 2)])
        start = 0
        while start < self.annotations.n_items:
            stop = max(int(np.searchsorted(before, before[start] + _PIECE, "right")) - 1, start + 1)
            row = np.arange(index[start], index[stop])
            item_end = np.repeat(index[start + 1 : stop + 1], size[start:stop])
            follow = item_end - 1 - row
            left = np.repeat(row, follow)
            begin = np.cumsum(follow) - follow
            right = left + 1 + np.arange(len(left)) - np.repeat(begin, follow)
            apart = self.annotations.annotator[left] != self.annotations.annotator[right]
            yield (left, right) if apart.all() else (left[apart], right[apart])
            start = stop

    def _key(self, left: Integers, right: Integers) -> Integers:
        one, other = (self.annotations.annotator[side].astype(np.int64) for side in (left, right))
        return one * self.annotations.n_annotators + other  # sorted by annotator: one < other

    @cached_property
    def _pairs(self) -> Integers:
        """Keys of the pairs that met, in order."""
        n = self.annotations.n_annotators
        if n * n <= _DENSE:
            met = np.zeros(n * n, dtype=bool)
            for left, right in self._pieces():
                met[self._key(left, right)] = True
            return np.flatnonzero(met)
        found = [np.unique(self._key(left, right)) for left, right in self._pieces()]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)

    @cached_property
    def _lookup(self) -> Integers | None:
        n = self.annotations.n_annotators
        if n * n > _DENSE:
            return None
        position = np.zeros(n * n, dtype=np.int64)
        position[self._pairs] = np.arange(len(self._pairs))
        return position

    def _added(self, times: Floats | None) -> tuple[Floats, Floats, Floats, Floats]:
        """Return overlap, differences, and the labels of both on common items: (pair[, class])."""
        n, k = len(self.one), self.annotations.n_classes
        overlap, apart = np.zeros((2, n))
        sides = np.zeros((2, n * k))
        item = self.annotations.item if times is not None else None
        for left, right in self._pieces():
            pair = self._pair_of(left, right)
            vote = self._vote[left] * self._vote[right]
            if times is not None and item is not None:
                vote = vote * times[item[left]]
            labels: list[Array] = [
                self.annotations.label[side].astype(np.int64) for side in (left, right)
            ]
            overlap += np.bincount(pair, vote, n)
            apart += np.bincount(pair, vote * self.difference.cells(*labels), n)
            for side, label in zip(sides, labels, strict=True):
                side += np.bincount(pair * k + label, vote, n * k)
        return overlap, apart, sides[0].reshape(n, k), sides[1].reshape(n, k)

    def _pair_of(self, left: Integers, right: Integers) -> Integers:
        key = self._key(left, right)
        return np.searchsorted(self._pairs, key) if self._lookup is None else self._lookup[key]

    @cached_property
    def _whole(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self._added(None)

    @property
    def overlap(self) -> Floats:
        """Items in common: (pair)."""
        return np.round(self._whole[0], 9)

    def values(self, measure: str, times: Floats | None = None) -> tuple[Floats, Floats]:
        """Return the agreement of every pair and its error, items counting so many times."""
        overlap, apart, left, right = self._whole if times is None else self._added(times)
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = apart / overlap
            left, right = left / overlap[:, None], right / overlap[:, None]
            if measure == "percent":
                expected = np.ones_like(apart)
            elif measure == "scott":
                mean = (left + right) / 2
                expected = (mean * self.difference.toward(mean)).sum(axis=-1)
            else:
                expected = (left * self.difference.toward(right)).sum(axis=-1)
            value = corrected(apart, expected)
            error = np.sqrt(np.maximum(apart * (1 - apart), 0) / overlap) / expected
        kept = (overlap > 0) & (self.overlap >= self.min_overlap)
        return np.where(kept, value, np.nan), np.where(kept, error, np.nan)

    def influence(self, measure: str) -> Floats:
        """Return how far the mean over pairs would move if an item counted more: (item).

        For two annotators the root of the summed squares is the standard error of Fleiss, Cohen
        and Everitt (1969).
        """
        overlap, apart, left_given, right_given = self._whole
        if measure == "scott":
            left_given = right_given = (left_given + right_given) / 2
        left_chance = self.difference.toward(right_given)  # (pair, class)
        right_chance = self.difference.toward(left_given)
        chance = (left_given * left_chance).sum(axis=-1)
        known = (chance > 0) & (self.overlap >= self.min_overlap)
        with np.errstate(invalid="ignore", divide="ignore"):
            base = np.where(known, apart / chance, 0)
            slope = np.where(known, overlap / chance, 0)
        n_values = int((~np.isnan(self.values(measure)[0])).sum())
        out = np.zeros(self.annotations.n_items)
        item = self.annotations.item
        for left, right in self._pieces():
            pair = self._pair_of(left, right)
            one, other = (self.annotations.label[side].astype(np.int64) for side in (left, right))
            both = (overlap * base)[pair]
            with np.errstate(invalid="ignore", divide="ignore"):
                expected = left_chance[pair, one] + right_chance[pair, other]
                expected = np.where(known[pair], expected / chance[pair], 0)
            moved = base[pair] + slope[pair] * self.difference.cells(one, other) - both * expected
            vote = self._vote[left] * self._vote[right]
            out -= np.bincount(item[left], vote * moved, minlength=len(out))
        return out / max(n_values, 1)
