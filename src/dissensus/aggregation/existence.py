"""Existence: whether a candidate that somebody marked is an object or clutter.

A candidate exists only because somebody marked it, so errors do not look like errors of a class.
The states of a candidate are clutter, and objects of several visibilities v:

    object v   annotator j marks it with probability found[j, v]
    clutter    one annotator marked it, j with probability clutter[j] among those who looked, and
               every other marks the same spot by coincidence

`found` has a Beta prior around the mean of all annotators at that visibility, which is fitted with
it; `clutter` has a Gamma prior. EM raises the objective in every iteration.

Where candidates may not overlap, as spans of a text, `schedule` selects those with the largest
summed weight (weighted interval scheduling).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from annotated_types import Interval
from scipy.special import betaln

from ..answers.annotations import Part
from ..answers.matching import overlaps
from ..base.arrays import Floats, Integers
from ..base.probability import label_temperature, log_normalize, normalize, safe_log
from ..params import Positive, Probability
from .em import EM, Expected

Levels = Annotated[int, Interval(ge=1, le=5)]
Selection = npt.NDArray[np.bool_]  # (span)
PairsOfSpans = tuple[Integers, Integers]
EXISTENCE = "objects"  # the name of the model in results
NO, YES = 0, 1  # the classes
_START, _MIDDLE = (0.3, 0.9), 0.6  # of `found`, before anything is learned
_LIMITS = (0.001, 0.999)  # of the mean of `found`
_SCALE = 2.0  # of the temperature: clutter is a state of its own, so the posterior is less sure
_TINY = 1e-300


class Visibility(NamedTuple):
    """What the model learns."""

    share: Floats  # (state): clutter, then objects by visibility
    found: Floats  # (annotator, visibility)
    clutter: Floats  # (annotator), summing to one
    mean: Floats  # (visibility): of `found`


class Counts(NamedTuple):
    """What it learns from, expected under the posterior; adds up over parts of the candidates."""

    share: Floats  # (state)
    by_answer: Floats  # (annotator and answer, visibility)
    drawn: Floats  # (annotator): clutter that they marked first
    exposure: Floats  # (annotator): clutter that they could have marked first


@dataclass(frozen=True, kw_only=True)
class Existence(EM[Visibility, Counts]):
    """Whether candidates exist, from whether annotators marked them.

    Parameters
    ----------
    levels
        Number of visibilities of objects.
    strength
        Pseudo-counts of every annotator's probability to find objects of a visibility.
    coincidence
        Probability that a further annotator marks the same clutter.
    """

    params_type: ClassVar[type] = Visibility
    max_classes: ClassVar[int | None] = 2

    levels: Levels = 2
    strength: Positive = 5.0
    coincidence: Probability = 0.02

    @property
    def spec(self) -> str:
        return EXISTENCE

    def log_joint(self, part: Part, params: Visibility) -> Floats:
        log_found = np.stack([np.log1p(-params.found), np.log(params.found)], axis=1)
        objects = part.labels @ log_found.reshape(-1, self.levels)  # (candidate, visibility)
        return np.column_stack([self._log_clutter(part, params), objects]) + np.log(params.share)

    def _log_clutter(self, part: Part, params: Visibility) -> Floats:
        """Return the log probability of all answers to clutter: (candidate)."""
        marked = part.label == YES
        rate = params.clutter[part.annotator]
        n_marks, n_looked = part.by_item(marked * 1.0), part.by_item(part.ones)
        first_mark = safe_log(part.by_item(rate * marked)) - safe_log(part.by_item(rate))
        first_mark[n_marks == 0] = 0.0  # gold that nobody marked
        n_further = np.maximum(n_marks - 1, 0)
        n_unmarked = n_looked - np.maximum(n_marks, 1)
        return (
            first_mark
            + n_further * np.log(self.coincidence)
            + n_unmarked * np.log1p(-self.coincidence)
        )

    def e_step(self, part: Part, params: Visibility) -> Expected:
        evidence, posterior = self.normalize_joint(self.log_joint(part, params), part.allowed)
        posterior[part.blank] = 0.0
        marked, rate = part.label == YES, params.clutter[part.annotator]
        clutter = posterior[:, 0][part.item]
        drawn = clutter * rate * marked / np.maximum(part.by_item(rate * marked), _TINY)[part.item]
        exposed = clutter / part.by_item(rate)[part.item]
        return Expected(
            evidence,
            Counts(
                posterior.sum(axis=0),
                part.labels.T @ posterior[:, 1:],
                part.by_annotator(drawn),
                part.by_annotator(exposed),
            ),
        )

    def normalize_joint(self, joint: Floats, allowed: Floats | float) -> tuple[float, Floats]:
        if isinstance(allowed, np.ndarray):
            allowed = allowed[:, [NO] + [YES] * self.levels]
        return log_normalize(joint, allowed)

    def part_posterior(self, part: Part, params: Visibility) -> Floats:
        _, state = self.normalize_joint(self.log_joint(part, params), part.allowed)
        return np.column_stack([state[:, 0], state[:, 1:].sum(axis=1)])

    def counts(self, part: Part, posterior: Floats) -> Counts:
        """Return counts of zero: the start does not depend on the answers."""
        n, v = part.n_annotators, self.levels
        return Counts(np.zeros(v + 1), np.zeros((2 * n, v)), np.zeros(n), np.zeros(n))

    def initial_counts(self, part: Part, posterior: Floats) -> Counts:
        return self.counts(part, posterior)

    def update(self, counts: Counts, last: Visibility | None) -> Visibility:
        n_annotators = len(counts.drawn)
        if last is None:
            start = np.linspace(*_START, self.levels) if self.levels > 1 else np.array([_MIDDLE])
            uniform = np.full(n_annotators, 1 / n_annotators)
            share = np.full(self.levels + 1, 1 / (self.levels + 1))
            return Visibility(share, np.tile(start, (n_annotators, 1)), uniform, start)
        missed, marked = counts.by_answer.reshape(n_annotators, 2, -1).swapaxes(0, 1)
        pooled = marked.sum(axis=0) / np.maximum((marked + missed).sum(axis=0), _TINY)
        choices = [
            self._found(marked, missed, mean) for mean in (last.mean, np.clip(pooled, *_LIMITS))
        ]
        raises = choices[1][2] >= choices[0][2]  # the pooled mean, unless that lowers the objective
        finding, mean = (
            np.where(raises, new, old) for old, new in zip(*(c[:2] for c in choices), strict=True)
        )
        rate = (counts.drawn + 1) / (counts.exposure + n_annotators)
        return Visibility(normalize(counts.share + 1), finding, normalize(rate), mean)

    def _found(self, marked: Floats, missed: Floats, mean: Floats) -> tuple[Floats, ...]:
        """Return `found` under a mean of its prior, that mean, and their expected objective."""
        s = self.strength
        finding = (marked + s * mean) / (marked + missed + s)
        gain = marked * np.log(finding) + missed * np.log1p(-finding)
        return finding, mean, (gain + self._log_beta(finding, mean)).sum(axis=0)

    def _log_beta(self, finding: Floats, mean: Floats) -> Floats:
        """Return the log prior density of `found`: (annotator, visibility)."""
        alpha, beta = self.strength * mean, self.strength * (1 - mean)
        return alpha * np.log(finding) + beta * np.log1p(-finding) - betaln(alpha + 1, beta + 1)

    def log_prior(self, params: Visibility) -> float:
        n_annotators = len(params.clutter)
        clutter = np.log(params.clutter).sum() - n_annotators * params.clutter.sum()
        finding = self._log_beta(params.found, params.mean).sum()
        return float(finding + clutter + np.log(params.share).sum())

    def quality(self, params: Visibility, agreement: Floats) -> Floats:
        return agreement

    def temperature(self, n_labels: Integers) -> Floats | None:
        return label_temperature(n_labels, _SCALE)


def schedule(item: Integers, place: Floats, weight: Floats) -> Selection:
    """Return the spans of the largest summed weight that do not overlap, on every item.

    In the order of ends, a span is taken if its weight and the best choice among the spans that
    end before it starts weigh more than the best choice without it. All items advance at once.

    >>> place = np.array([[0.0, 4.0], [3.0, 6.0], [5.0, 9.0]])
    >>> schedule(np.zeros(3, int), place, np.array([2.0, 3.0, 2.0])).tolist()
    [True, False, True]
    """
    order = np.lexsort((place[:, 0], place[:, 1], item))
    selected = np.zeros(len(order), dtype=bool)
    selected[order] = _schedule_sorted(item[order], place[order], weight[order])
    return selected


def _schedule_sorted(item: Integers, place: Floats, weight: Floats) -> Selection:
    """Return the choice among spans sorted by item and end."""
    values, rank = np.unique(place, return_inverse=True)
    start, end = item * len(values) + rank.reshape(place.shape).T
    n_before = np.searchsorted(end, start, side="right")  # those end before this one starts
    item_start = np.searchsorted(item, item)  # of the item
    step = np.arange(len(item)) - item_start
    best = np.zeros(len(item) + 1)  # weight of the best choice among the spans before
    is_taken = np.zeros(len(item), dtype=bool)
    by_step = np.argsort(step, kind="stable")
    for rows in np.split(by_step, np.cumsum(np.bincount(step))[:-1]) if len(item) else ():
        without = np.where(rows > item_start[rows], best[rows], 0.0)
        earlier = np.where(n_before[rows] > item_start[rows], best[n_before[rows]], 0.0)
        is_taken[rows] = weight[rows] + earlier > without
        best[rows + 1] = np.maximum(weight[rows] + earlier, without)
    selected = np.zeros(len(item), dtype=bool)
    row = np.flatnonzero(np.append(item[1:] != item[:-1], True)) if len(item) else item_start
    lowest = item_start[row]
    while len(row):  # from the last span of every item back to the first
        selected[row[is_taken[row]]] = True
        row = np.where(is_taken[row], n_before[row], row) - 1
        remaining = row >= lowest
        row, lowest = row[remaining], lowest[remaining]
    return selected


def allow_nested(
    item: Integers, place: Floats, weight: Floats, selected: Selection, nested: PairsOfSpans
) -> Selection:
    """Return the choice and further spans that overlap only spans they may be kept together with.

    The heaviest of every item is added first.
    """
    first, second = overlaps(item, place)
    n_spans = len(item)
    allowed = np.isin(first * n_spans + second, nested[0] * n_spans + nested[1])
    allowed |= np.isin(first * n_spans + second, nested[1] * n_spans + nested[0])
    mark, rival = (
        np.concatenate(pair)[np.tile(~allowed, 2)] for pair in ((first, second), (second, first))
    )
    selected = selected.copy()
    while True:
        blocked = np.zeros(n_spans, dtype=bool)
        blocked[mark[selected[rival]]] = True
        free = np.flatnonzero(~selected & ~blocked)
        if len(free) == 0:
            return selected
        free = free[np.lexsort((free, -weight[free], item[free]))]
        selected[free[np.flatnonzero(np.diff(item[free], prepend=-1))]] = True
