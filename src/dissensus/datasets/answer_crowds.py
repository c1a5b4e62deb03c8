"""Comparisons: which of two things is better, with ties, a side, and careless annotators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.names import numbered
from ..answers.rankings import Rankings
from ..params import Count, NonNegative, Positive, Probability
from .answer_strategy import AnswerStrategy, Assigned, Drawn


@dataclass(frozen=True, kw_only=True)
class Comparisons(AnswerStrategy):
    """Annotators who compare two things per item, by Bradley and Terry with ties.

    Comparisons: which of two things is better, with ties, a side, and careless annotators.

        odds of left : right : tie = e^(d/2) : e^(-d/2) : tie
        d = score[left] - score[right] + side

    When it fails: One scale for all annotators: there are no tastes and no circles.

    Parameters
    ----------
    things
        Number of things.
    spread
        Standard deviation of their scores.
    tie
        Weight of a tie, against those of left and right.
    careless
        Share of annotators who answer at random.
    side
        Preference for the left side, in units of scores.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate("comparisons[things=5]", n_items=20, n_annotators=3).answers
    <rankings: 20 items, 3 annotators, 5 things, 2.0 ranked at a time>
    """

    things: Count = 20
    spread: Positive = 1.0
    tie: NonNegative = 0.5
    careless: Probability = 0.1
    side: float = 0.0

    def draw(self, asked: Assigned, rng: np.random.Generator) -> Drawn:
        n = max(self.things, 2)
        score = rng.normal(0, self.spread, n)
        left = rng.integers(n, size=asked.n_items)
        right = (left + rng.integers(1, n, size=asked.n_items)) % n
        careless = rng.random(asked.n_annotators) < self.careless
        apart = (score[left] - score[right] + self.side)[asked.item]
        odds = np.stack([np.exp(apart / 2), np.exp(-apart / 2), np.full(len(apart), self.tie)], 1)
        odds[careless[asked.annotator]] = 1.0
        upto = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)
        outcome = (rng.random(len(apart))[:, None] > upto[:, :2]).sum(axis=1)
        names, things = asked.names, numbered(n)
        answers = Rankings.from_comparisons(
            names["items"][asked.item],
            names["annotators"][asked.annotator],
            things[left[asked.item]],
            things[right[asked.item]],
            np.array(["left", "right", "tie"])[outcome],
            **names,
        )
        truth = dict(zip(things.tolist(), score.round(6).tolist(), strict=True))
        return Drawn(answers, truth, {"careless": careless})
