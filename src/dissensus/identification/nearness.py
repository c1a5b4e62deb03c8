"""How near an annotator's answers are to those of others on the same items, for any kind.

    follows = 1 - same / other

`same` is the mean distance of an annotator's answers to those of others on the same items, `other`
that to answers of others on other items, drawn at random. It is 1 if answers are those of the
others, and 0 if they have no more to do with their items than with any other. Its standard error
is that of a ratio (delta method), its interval Student's.

A verdict needs ten answers that can be compared. `unrelated` and `distant` need that the interval,
widened for the number of annotators (Bonferroni), lies below half of the median annotator; the
interval of those who are `unrelated` includes 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from .._relation import Floats, Integers
from ..answers import Answers
from .annotator_evidence import ENOUGH

UNRELATED, DISTANT, FEW, ORDINARY = "unrelated", "distant", "too few answers", "ordinary"
NEARNESS_VERDICTS = (UNRELATED, DISTANT, FEW, ORDINARY)  # the worst first
_DRAWN = 5  # answers to other items, for every answer
_BELOW = 0.5  # of the median annotator


class Nearness(NamedTuple):
    """How far annotators' answers follow the items: (annotator), NaN where it is undefined."""

    n_compared: Integers  # answers to items that others answered, too
    same: Floats  # mean distance to others on the same item
    other: Floats  # to others on other items
    follows: Floats
    low: Floats  # of the 95 % interval
    high: Floats
    verdict: Any  # texts

    @property
    def worst(self) -> Integers:
        """Annotators by code, the worst verdict and the lowest value first."""
        rank = np.array([NEARNESS_VERDICTS.index(one) for one in self.verdict.tolist()])
        value = np.where(np.isnan(self.follows), np.inf, self.follows)
        return np.lexsort((np.arange(len(rank)), value, rank))

    def judged(self, verdict: str) -> Any:
        """Return which annotators have this verdict: (annotator)."""
        return self.verdict == verdict


def nearness(answers: Answers, same: Floats, *, seed: int = 0) -> Nearness:
    """Return how far annotators' answers follow the items.

    Parameters
    ----------
    answers
        The answers.
    same
        The mean distance of every answer to others on the same item, NaN without any: (answer).
    seed
        Random seed of the answers to other items.

    Examples
    --------
    >>> from dissensus.agreement.distances import Distances
    >>> from dissensus.answers import Texts
    >>> texts = Texts.from_values("aabb", "xyxy", ["one two", "one two", "six", "six"])
    >>> nearness(texts, Distances.of(texts).by_answer(4)).follows.tolist()
    [1.0, 1.0]
    """
    size, who = answers.n_annotators, answers.annotator
    rows = np.flatnonzero(~np.isnan(same))
    rows, other = _distances_elsewhere(answers, rows, np.random.default_rng(seed))
    annotator = who[rows].astype(np.int64)

    def total(value: Floats) -> Floats:
        return np.bincount(annotator, value, minlength=size).astype(float)

    n = np.bincount(annotator, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        near, far = total(same[rows]), total(other)
        follows = np.where(far > 0, 1 - near / far, np.nan)
        residual = same[rows] - (1 - follows[annotator]) * other
        error = np.sqrt(total(residual**2) * n / (n - 1)) / far
    enough = (n >= ENOUGH) & np.isfinite(follows) & np.isfinite(error)
    error = np.where(enough, error, np.nan)
    freedom = np.maximum(n - 1, 1)
    reach = stdtrit(freedom, 0.975) * error
    wide = stdtrit(freedom, 1 - 0.025 / max(int(enough.sum()), 1)) * error
    usual = float(np.median(follows[enough])) if enough.any() else np.nan
    below = enough & (follows + wide < _BELOW * usual)
    verdict = np.full(size, ORDINARY, dtype=object)
    verdict[~enough] = FEW
    verdict[below] = DISTANT
    verdict[below & (follows - wide <= 0)] = UNRELATED
    with np.errstate(invalid="ignore"):
        return Nearness(n, near / n, far / n, follows, follows - reach, follows + reach, verdict)


def _distances_elsewhere(
    answers: Answers, rows: Integers, rng: np.random.Generator
) -> tuple[Integers, Floats]:
    """Return rows that can be compared, and their mean distance to others on other items."""
    if not len(rows):
        return rows, np.zeros(0)
    drawn = rng.integers(len(answers), size=(len(rows), _DRAWN))
    apart = answers.item[rows][:, None] != answers.item[drawn]
    apart &= answers.annotator[rows][:, None] != answers.annotator[drawn]
    position, column = np.nonzero(apart)
    distance = answers.distance(rows[position], drawn[position, column])
    count = apart.sum(axis=1)
    total = np.bincount(position, distance, minlength=len(rows))
    some = count > 0
    return rows[some], total[some] / count[some]
