"""ROVER: texts aligned word by word into slots, and a weighted vote in every slot.

The answers to an item are aligned one after the other to a growing network of slots, beginning with
the one nearest to all others, then those nearest to it. A word costs nothing in a slot that has it,
one otherwise; leaving out a slot costs nothing where another answer has left it out. In every slot
the words vote, and "nothing" counts less than a word. The weight of an annotator is the log odds of
agreeing with the others in a slot.

    word[slot] = argmax_w Σ_a weight[a] · 1(a has w in the slot)

When it fails: Free wording: a vote over slots mixes phrases of different answers into a sentence
that nobody wrote. Words in another order are not aligned.

    J. G. Fiscus. A post-processing system to yield reduced word error rates: recognizer output
    voting error reduction (ROVER). ASRU, 1997.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..answers.texts import Texts, Tokens
from ..base.arrays import Array, Floats, Integers
from ..base.names import as_names
from ..method import FitContext, Method
from ..params import Positive, Whole
from .aggregation import AnswerAggregation

_CELLS = 2**21  # slots × words of a batch
_PSEUDO = 20.0  # slots at the overall mean, added to those of an annotator
_LEAST = 0.05  # weight
_BONUS = np.log(3.0)  # of the log odds
_PAD = -1  # no token


class Batch(NamedTuple):
    """Items of like length with equally many answers, their networks of slots side by side."""

    item: Integers  # (item)
    answer: Integers  # (item, answer): rows of the answers, in the order of alignment
    slots: Integers  # (item, slot, answer): a token, or -1 for nothing
    length: Integers  # (item): number of slots

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """Which slots an item has: (item, slot)."""
        return np.arange(self.slots.shape[1]) < self.length[:, None]


@dataclass(frozen=True, kw_only=True)
class Rover(Method[Texts, AnswerAggregation]):
    """Texts aligned word by word into slots, and a weighted vote in every slot.

    Parameters
    ----------
    empty
        How much "nothing" counts in a slot, compared with a word.
    rounds
        How often the weights of annotators are learned; 0 gives all the same.
    """

    empty: Positive = 0.7
    rounds: Whole = 3

    def infer(self, fit: FitContext[Texts]) -> AnswerAggregation:
        answers: Texts = fit.answers
        tokens, annotator = answers.tokens, answers.annotator.astype(np.int64)
        batches = list(align(answers))
        word = np.append(tokens.word, _PAD)  # that of token -1 is -1
        weight = np.ones(answers.n_annotators)
        accuracy = np.full(answers.n_annotators, np.nan)
        for number in range(self.rounds):
            right, n_slots = np.zeros(answers.n_annotators), np.zeros(answers.n_annotators)
            for batch in batches:
                agreed, slots = _agreement(batch, word, weight[annotator[batch.answer]])
                np.add.at(right, annotator[batch.answer], agreed)
                np.add.at(n_slots, annotator[batch.answer], slots)
            mean = right.sum() / max(n_slots.sum(), 1.0)
            accuracy = (right + _PSEUDO * mean) / (n_slots + _PSEUDO)
            odds = np.log(np.clip(accuracy, 1e-6, 1 - 1e-6) / np.clip(1 - accuracy, 1e-6, 1))
            weight = np.maximum(odds + _BONUS, _LEAST)
            fit.progress(number + 1, float(mean))
        text = np.full(answers.n_items, "", dtype=object)
        confidence = np.full(answers.n_items, np.nan)
        for batch in batches:
            winners, share = self._vote(batch, tokens, word, weight[annotator[batch.answer]])
            text[batch.item], confidence[batch.item] = winners, share
        if fit.gold is not None:
            text[fit.gold.item] = fit.gold.text.tolist()
            confidence[fit.gold.item] = 1.0
        items: dict[str, Array] = {
            "item": answers.items,
            "text": as_names(text.tolist()),
            "confidence": confidence,
            "n": answers.labels_per_item,
        }
        active = answers.labels_per_annotator > 0
        quality = {"accuracy": np.where(active, accuracy, np.nan), "weight": weight}
        return AnswerAggregation.of(self, fit, items, quality, params={"weight": weight})

    def _vote(
        self, batch: Batch, tokens: Tokens, word: Integers, weight: Floats
    ) -> tuple[list[str], Floats]:
        """Return the texts of a batch, and the mean share of votes of their slots."""
        words = word[batch.slots]  # (item, slot, answer)
        support = np.zeros(words.shape)
        for k in range(words.shape[2]):
            support += weight[:, None, k, None] * (words == words[:, :, k, None])
        share = support / weight.sum(axis=1)[:, None, None]
        best = np.where(words < 0, self.empty * support, support).argmax(axis=2)[:, :, None]
        winner = np.take_along_axis(words, best, axis=2)[:, :, 0]
        won = np.take_along_axis(share, best, axis=2)[:, :, 0]
        spelling = np.append(tokens.spelling, _PAD)[batch.slots]
        matches = words == winner[:, :, None]
        votes = np.zeros(words.shape)
        for k in range(words.shape[2]):
            votes += weight[:, None, k, None] * (spelling == spelling[:, :, k, None])
        top = np.where(matches, votes, -1.0).argmax(axis=2)[:, :, None]
        written = np.take_along_axis(spelling, top, axis=2)[:, :, 0]
        names = np.append(tokens.spellings, "").tolist()
        blank = " " if tokens.unit == "word" else ""
        present, spoken = batch.used, batch.used & (winner >= 0)
        texts = [
            blank.join(names[code] for code in row[filled].tolist())
            for row, filled in zip(written, spoken, strict=True)
        ]
        size = np.maximum(present.sum(axis=1), 1)
        mean = np.where(batch.length > 0, (won * present).sum(axis=1) / size, 1.0)
        return texts, mean


def align(answers: Texts) -> Iterator[Batch]:
    """Yield the networks of all items with answers, in batches of like length."""
    tokens, size = answers.tokens, answers.tokens.sizes
    first, second = answers.within_item_pairs()
    distance = answers.distance(first, second)
    total = np.bincount(first, distance, len(answers)) + np.bincount(second, distance, len(answers))
    item, count = answers.item.astype(np.int64), answers.labels_per_item
    order = np.lexsort((np.arange(len(answers)), -size, total, item))
    medoid = np.full(answers.n_items, -1)
    answered = np.flatnonzero(count > 0)
    medoid[answered] = order[answers.index[:-1][answered]]
    to_medoid = np.zeros(len(answers))
    for source, target in ((first, second), (second, first)):
        near = medoid[item[source]] == source
        to_medoid[target[near]] = distance[near]
    to_medoid[medoid[answered]] = -1.0
    order = np.lexsort((total, to_medoid, item))
    longest = np.zeros(answers.n_items, dtype=np.int64)
    np.maximum.at(longest, item, size)
    answered = answered[np.lexsort((longest[answered], count[answered]))]
    position = 0
    while position < len(answered):
        head = answered[position]
        width = int(longest[head]) + 4
        batch = answered[position : position + max(1, _CELLS // (2 * width * width))]
        like = (count[batch] == count[head]) & (longest[batch] <= 1.5 * width)
        batch = batch[: int(np.argmin(like)) if not like.all() else len(batch)]
        rows = order[answers.index[batch][:, None] + np.arange(count[head])]
        yield _network(batch, rows, tokens)
        position += len(batch)


def _network(item: Integers, answer: Integers, tokens: Tokens) -> Batch:
    """Return the network of every item: answers are aligned in their order."""
    word = np.append(tokens.word, _PAD)
    slots, length = _tokens(tokens, answer[:, 0])
    slots = slots[:, :, None]
    for k in range(1, answer.shape[1]):
        added, n_words = _tokens(tokens, answer[:, k])
        slots, length = _aligned(slots, length, added=added, n_words=n_words, word=word)
    return Batch(item, answer, slots, length)


def _tokens(tokens: Tokens, rows: Integers) -> tuple[Integers, Integers]:
    """Return the tokens of texts, padded, and their number: (text, place)."""
    size = tokens.sizes[rows]
    place = np.arange(max(int(size.max(initial=0)), 1))  # also of an empty text
    table = tokens.starts[rows][:, None] + place
    return np.where(place < size[:, None], table, _PAD), size


def _aligned(
    slots: Integers, length: Integers, added: Integers, n_words: Integers, word: Integers
) -> tuple[Integers, Integers]:
    """Return the slots with one more answer, (item, slot, answer), and their number."""
    n, n_slots, _ = slots.shape
    width = added.shape[1]
    in_slots, words = word[slots], word[added]
    differs = np.ones((n, n_slots, width), dtype=bool)
    for k in range(in_slots.shape[2]):
        differs &= in_slots[:, :, k, None] != words[:, None, :]
    skip = ~(in_slots == _PAD).any(axis=2)  # (item, slot): what leaving a slot out costs
    column = np.arange(width + 1)
    cost = np.empty((n, n_slots + 1, width + 1), dtype=np.int64)
    cost[:, 0] = column
    for i in range(n_slots):
        row = cost[:, i + 1]
        row[:, 0] = cost[:, i, 0] + skip[:, i]
        np.minimum(
            cost[:, i, :-1] + differs[:, i], cost[:, i, 1:] + skip[:, i, None], out=row[:, 1:]
        )
        row[:] = np.minimum.accumulate(row - column, axis=1) + column
    slot, place = _path(cost, differs, skip=skip, length=length, n_words=n_words)
    size = (slot != -2).sum(axis=1)
    out = np.full((n, slot.shape[1], slots.shape[2] + 1), _PAD)
    rows = np.arange(n)[:, None]
    out[:, :, :-1] = np.where((slot >= 0)[:, :, None], slots[rows, np.maximum(slot, 0)], _PAD)
    out[:, :, -1] = np.where(place >= 0, added[rows, np.maximum(place, 0)], _PAD)
    longest = int(size.max(initial=0))
    return out[:, :longest], size


def _path(
    cost: Integers,
    differs: npt.NDArray[np.bool_],
    skip: npt.NDArray[np.bool_],
    length: Integers,
    n_words: Integers,
) -> tuple[Integers, Integers]:
    """Return slot and word of every step of the cheapest alignment, -1 for none, -2 at its end."""
    rows = np.arange(len(cost))
    i, j = length.copy(), n_words.copy()
    steps: list[tuple[Integers, Integers]] = []
    while (i + j).any():
        up, back = np.maximum(i - 1, 0), np.maximum(j - 1, 0)
        current = cost[rows, i, j]
        wrong = differs[rows, up, back] if differs.shape[2] else np.ones(len(rows), dtype=bool)
        match = (i > 0) & (j > 0) & (current == cost[rows, up, back] + wrong)
        leave = ~match & (i > 0) & (current == cost[rows, up, j] + skip[rows, up])
        open_ = (i + j) > 0
        insert = ~match & ~leave & open_
        slot = np.where(match | leave, i - 1, np.where(open_, -1, -2))
        place = np.where(match | insert, j - 1, np.where(open_, -1, -2))
        steps.append((slot, place))
        i = i - (match | leave)
        j = j - (match | insert)
    if not steps:
        none = np.zeros((len(cost), 0), dtype=np.int64)
        return none, none
    slot, place = (np.stack(track[::-1], axis=1) for track in zip(*steps, strict=True))
    # Shorter paths are padded in front: move them to the left.
    size = (slot != -2).sum(axis=1)
    at = np.arange(slot.shape[1]) + (slot.shape[1] - size)[:, None]
    inside = at < slot.shape[1]
    at = np.minimum(at, slot.shape[1] - 1)
    move = np.arange(len(slot))[:, None]
    return np.where(inside, slot[move, at], -2), np.where(inside, place[move, at], -2)


def _agreement(batch: Batch, word: Integers, weight: Floats) -> tuple[Floats, Floats]:
    """Return the weight of others who agree, summed over slots, and the slots: (item, answer)."""
    words, present = word[batch.slots], batch.used
    n_answers = words.shape[2]
    total = weight.sum(axis=1)[:, None]
    right = np.zeros(weight.shape)
    for k in range(n_answers):
        matches = words == words[:, :, k, None]
        support = (matches * weight[:, None, :]).sum(axis=2) - weight[:, k, None]
        right[:, k] = (support * present).sum(axis=1)
    available = total - weight
    n_slots = batch.length[:, None] * np.ones(n_answers)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(available > 0, right / available, 0.0), np.where(
            available > 0, n_slots, 0.0
        )
