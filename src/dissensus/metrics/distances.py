"""Agreement on answers of any kind, by their distance.

    alpha = 1 - D_o / D_e

D_o is the mean distance of answers to the same item, each answer weighted alike; D_e that of
answers to different items, over all pairs up to 20 000 and else over as many drawn at random. Where
answers to different items have nothing in common D_e is near 1 and alpha hardly more than 1 - D_o.

    spans      token_alpha: Krippendorff's alpha of the labels of tokens, up to the last marked
               token of an item; span_f1: F1 of all pairs of annotators together, same spans with
               the same label; gamma, see below
    boxes      f1_50: mean F1 of pairs of answers, at an intersection over union of one half
    points     f1_50: likewise, at a similarity of one half
    masks      iou: mean intersection over union of pairs of answers
    sets       alpha with the MASI distance; jaccard_alpha; option_alpha: mean over options, of
               chosen or not

Intervals are percentiles of bootstrap samples of items.

Gamma says how well two annotators' spans can be aligned, compared with shuffled ones. Two spans
differ by ((|s1 - s2| + |e1 - e2|) / (length 1 + length 2))², and by 1 more with another label; a
span without partner costs 1. The disorder of two annotators is the cost of the best alignment over
their mean number of spans. Gamma is 1 - observed / expected disorder, and here the mean over pairs
of annotators. Shuffled spans are those of the same item, whose timelines are cut at random
positions and rotated.

    K. Krippendorff. Content Analysis: An Introduction to Its Methodology. Sage, 2004.
    Y. Mathet, A. Widlöcher, J.-P. Métivier. The unified and holistic method gamma for
    inter-annotator agreement measure and alignment. Computational Linguistics 41(3), 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..answers import KINDS, Answers
from ..answers.base import Relation
from ..answers.marks import Marks, Spans
from ..answers.matching import best_match
from ..answers.numbers import Numbers
from ..answers.sets import Sets
from ..base.arrays import Floats, Integers, count_up
from ..errors import DataError, OptionError
from .agreement import By, agree
from .agreement_result import Agreement, Estimate, MeanDistance
from .joint import Resampling, draws, interval_of
from .pairs import label_pairs

_SHUFFLES = 30
_PAIRS_OF_UNITS = 20_000  # of all shuffles together
_CELLS = 2**22  # pairs of spans at a time
_PAIRS = 20_000  # pairs of answers to different items


def gamma_samples(
    spans: Spans, first: Integers, second: Integers, rng: np.random.Generator
) -> Callable[[Floats], Floats]:
    """Return gamma as a function of weights of items, (sample, item), to values: (sample)."""
    marked = spans.sizes[first] + spans.sizes[second] > 0
    first, second = first[marked], second[marked]
    item = spans.item.astype(np.int64)[first]
    observed = disorder(spans, spans.place, first, second)
    drawn, shuffled = _shuffled(spans, first, second, rng)
    n = spans.n_items
    within = np.bincount(item, observed, minlength=n), np.bincount(item, minlength=n)
    by_item = np.bincount(item[drawn], shuffled, minlength=n)
    expected = by_item, np.bincount(item[drawn], minlength=n)

    def samples(weights: Floats) -> Floats:
        mean = [
            np.divide(
                weights @ total,
                weights @ count,
                out=np.full(len(weights), np.nan),
                where=weights @ count > 0,
            )
            for total, count in (within, expected)
        ]
        return 1 - mean[0] / mean[1]

    return samples


def disorder(spans: Spans, place: Floats, first: Integers, second: Integers) -> Floats:
    """Return the disorder of pairs of answers, at least one of which holds a span.

    Two spans cost 2 apart and d together, so the best alignment has the largest sum of 2 - d.
    """
    sizes = spans.sizes[first] + spans.sizes[second]
    cells = np.maximum(spans.sizes[first] * spans.sizes[second], 1)
    saved = np.zeros(len(first))
    cumulative, start = np.cumsum(cells), 0
    while start < len(first):
        spent = cumulative[start - 1] if start else 0
        stop = max(int(np.searchsorted(cumulative, spent + _CELLS, side="right")), start + 1)
        pair, left, right = spans.mark_pairs(first[start:stop], second[start:stop])
        offset = np.abs(place[left] - place[right]).sum(axis=1)
        lengths = (place[left, 1] - place[left, 0]) + (place[right, 1] - place[right, 0])
        gain = 2 - (offset / lengths) ** 2 - (spans.label[left] != spans.label[right])
        near = gain > 0
        saved[start:stop] = best_match(
            pair[near], left[near], right[near], value=gain[near], n_pairs=stop - start
        )
        start = stop
    return (sizes - saved) / (sizes / 2)


def _shuffled(
    spans: Spans, first: Integers, second: Integers, rng: np.random.Generator
) -> tuple[Integers, Floats]:
    """Return pairs of answers with the disorder of their shuffled spans."""
    per_shuffle = min(len(first), max(_PAIRS_OF_UNITS // _SHUFFLES, 1))
    item = spans.item.astype(np.int64)
    end = np.zeros(spans.n_items)
    np.maximum.at(end, spans.mark_item, spans.place[:, 1])
    length = np.maximum(end, 1.0)[spans.mark_item]
    size = spans.place[:, 1] - spans.place[:, 0]
    drawn, disorders = [], []
    for _ in range(_SHUFFLES):
        cut = rng.random(len(item))[spans.answer]
        start = (spans.place[:, 0] + np.floor(cut * length)) % length
        place = np.column_stack([start, start + size])
        at = rng.choice(len(first), per_shuffle, replace=False)
        drawn.append(at)
        disorders.append(disorder(spans, place, first[at], second[at]))
    return np.concatenate(drawn), np.concatenate(disorders)


Samples = Callable[[Floats], Floats]  # weights of items, (sample, item), to values: (sample)
OfKind = tuple[dict[str, Samples], tuple[str, ...]]  # measures, and notes on them


class Distances(NamedTuple):
    """The distances of all pairs of answers to the same item."""

    first: Integers  # (pair): an answer
    second: Integers  # (pair)
    distance: Floats  # (pair)

    @classmethod
    def of(cls, answers: Any) -> Distances:
        """Return the distances within items; of numbers, the absolute differences."""
        if answers.kind in _PAIRS_OF:
            return cls(*_PAIRS_OF[answers.kind](answers))
        first, second = answers.within_item_pairs()
        return cls(first, second, answers.distance(first, second))

    def by_answer(self, n_answers: int) -> Floats:
        """Return the mean distance of every answer to the others, NaN without any: (answer)."""
        ends = np.concatenate([self.first, self.second])
        total = np.bincount(ends, np.tile(self.distance, 2), minlength=n_answers)
        count = np.bincount(ends, minlength=n_answers)
        return np.divide(total, count, out=np.full(n_answers, np.nan), where=count > 0)

    def by_item(self, answers: Relation) -> Floats:
        """Return the mean distance within every item, NaN with fewer than two answers: (item)."""
        item = answers.item.astype(np.int64)[self.first]
        return _mean_by(self.distance, item, answers.n_items)


def _number_pairs(numbers: Numbers) -> tuple[Integers, Integers, Floats]:
    """Return every two numbers on an item, and their absolute difference."""
    nothing = np.zeros(0, dtype=np.int64)
    pairs = [(nothing, nothing), *label_pairs(numbers.labels_per_item, _CELLS)]
    first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return first, second, np.abs(numbers.value[first] - numbers.value[second])


_PAIRS_OF = {"numbers": _number_pairs}


@agree.for_kind(*KINDS)
def agree_on_answers(answers: Answers, *, by: By | None, resampling: Resampling) -> Agreement:
    """Return how much annotators agree on answers of a kind, by their distance."""
    resampling.check()
    if by not in (None, "item", "annotator"):
        raise OptionError(f"by = {by!r}, but of {answers.kind} it must be item or annotator")
    if resampling.interval != "percentile":
        raise OptionError(f"agree of {answers.kind} has no interval {resampling.interval}")
    paired = answers.labels_per_item > 1
    if not paired.any():
        raise DataError("no item has two answers or more, so nothing can be compared")
    comparable = answers.subset(items=paired)
    within = Distances.of(comparable)
    rng = np.random.default_rng(resampling.seed)
    measures, notes = _measures(comparable, within, rng)
    once = np.ones(comparable.n_items, dtype=np.int64)
    values = {name: float(measure(once[None].astype(float))[0]) for name, measure in measures}
    drawn: dict[str, list[Floats]] = {name: [] for name, _ in measures}
    n_done = 0
    for weights in draws(once, resampling.resamples, resampling.seed):
        for name, measure in measures:
            drawn[name].append(measure(weights))
        n_done += len(weights)
        resampling.advance(n_done)
    estimates = tuple(
        _estimate(
            name, values[name], np.concatenate([*drawn[name], np.zeros(0)]), resampling.confidence
        )
        for name, _ in measures
    )
    parts = _breakdown(comparable, within)
    return Agreement(
        kind=answers.kind,
        summary=answers.summary,
        estimates=estimates,
        by=by,
        parts=parts[by] if by else (),
        annotators=parts["annotator"],
        items=parts["item"],
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
        n_labels=len(answers),
        n_paired=comparable.n_items,
        resamples=resampling.resamples,
        confidence=resampling.confidence,
        notes=notes,
    )


def _estimate(name: str, value: float, drawn: Floats, confidence: float) -> Estimate:
    low, high, dropped = interval_of(value, drawn, confidence)
    values = drawn[~np.isnan(drawn)]
    error = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
    return Estimate(measure=name, value=value, low=low, high=high, error=error, dropped=dropped)


def _breakdown(answers: Answers, within: Distances) -> dict[str, tuple[MeanDistance, ...]]:
    """Return the mean distances of items and of annotators, the largest first."""
    item = within.by_item(answers)
    mean = _mean_by(within.by_answer(len(answers)), answers.annotator, answers.n_annotators)
    sides = {
        "item": (answers.items, answers.labels_per_item, item),
        "annotator": (answers.annotators, answers.labels_per_annotator, mean),
    }
    return {
        side: tuple(
            MeanDistance(str(names[code]), int(counts[code]), float(distance[code]))
            for code in np.argsort(-distance, kind="stable").tolist()
            if counts[code]
        )
        for side, (names, counts, distance) in sides.items()
    }


def _mean_by(value: Floats, group: Any, size: int) -> Floats:
    total, count = np.bincount(group, value, size), np.bincount(group, minlength=size)
    return np.divide(total, count, out=np.full(size, np.nan), where=count > 0)


def _measures(
    answers: Answers, within: Distances, rng: np.random.Generator
) -> tuple[list[tuple[str, Samples]], tuple[str, ...]]:
    """Return the measures of a kind as functions of weights of items, and notes."""
    first, second, drawn = _across(answers, rng)
    notes: tuple[str, ...] = ()
    if drawn:
        notes = (f"expected distance from {len(first)} pairs of answers drawn at random",)
    observed, expected = _within(answers, within), _between(answers, first, second)
    measures: list[tuple[str, Samples]] = [
        ("alpha", lambda w: _alpha(observed(w), expected(w))),
        ("observed", observed),
        ("expected", expected),
    ]
    of_kind = _MEASURES.get(answers.kind, _nothing_else)
    measures_of_kind, notes_of_kind = of_kind(answers, within, first, second, rng)
    return [*measures, *measures_of_kind.items()], notes + notes_of_kind


def _nothing_else(*_: object) -> OfKind:
    return {}, ()


def _of_spans(
    spans: Spans, within: Distances, _first: Integers, _second: Integers, rng: np.random.Generator
) -> OfKind:
    if not len(spans.place):
        return {}, ()
    measures = {
        "token_alpha": _token_alpha(spans),
        "span_f1": _pooled_f1(spans),
        "gamma": gamma_samples(spans, within.first, within.second, rng),
    }
    return measures, ("gamma is the mean over pairs of annotators",)


def _of_marks(marks: Marks, within: Distances, *_: Any) -> OfKind:
    score = marks.f1(within.first, within.second, 0.5)
    return {"f1_50": _pair_mean(marks, within, score)}, ()


def _of_masks(masks: Answers, within: Distances, *_: Any) -> OfKind:
    return {"iou": _pair_mean(masks, within, 1 - within.distance)}, ()


def _of_sets(
    sets: Sets, within: Distances, first: Integers, second: Integers, _rng: np.random.Generator
) -> OfKind:
    near = Distances(*within[:2], sets.distance(*within[:2], "jaccard"))
    inside = _within(sets, near)
    outside = _between(sets, first, second, sets.distance(first, second, "jaccard"))
    measures = {
        "jaccard_alpha": lambda w: _alpha(inside(w), outside(w)),
        "option_alpha": _option_alpha(sets),
    }
    return measures, ()


# What a kind has beside alpha and the distances.
_MEASURES: Mapping[str, Callable[..., OfKind]] = {
    "spans": _of_spans,
    "boxes": _of_marks,
    "points": _of_marks,
    "masks": _of_masks,
    "sets": _of_sets,
}


def _alpha(observed: Floats, expected: Floats) -> Floats:
    """Return 1 - D_o / D_e; 1 where nothing differs anywhere."""
    ratio = np.divide(observed, expected, out=np.zeros(len(observed)), where=expected > 0)
    unknown = np.isnan(expected) | ((expected == 0) & (observed > 0))  # one item alone
    return np.where(unknown, np.nan, 1 - ratio)


def _across(answers: Answers, rng: np.random.Generator) -> tuple[Integers, Integers, bool]:
    """Return pairs of answers to different items: all, or as many as are enough."""
    n, item = len(answers), answers.item
    sizes = answers.labels_per_item.astype(np.int64)
    total = (n * n - int((sizes**2).sum())) // 2
    if total <= _PAIRS:
        first, second = np.triu_indices(n, 1)
        differ = item[first] != item[second]
        return first[differ], second[differ], False
    first, second = rng.integers(n, size=(2, 2 * _PAIRS + 1000 * answers.n_items // n))
    differ = item[first] != item[second]
    first, second = first[differ], second[differ]
    while len(first) < _PAIRS:  # one item has nearly all answers
        further = rng.integers(n, size=(2, 2 * _PAIRS))
        differ = item[further[0]] != item[further[1]]
        first = np.concatenate([first, further[0][differ]])
        second = np.concatenate([second, further[1][differ]])
    return first[:_PAIRS], second[:_PAIRS], True


def _within(answers: Answers, within: Distances) -> Samples:
    """Return D_o: items count as often as they have answers."""
    size = answers.labels_per_item.astype(float)
    total = size * within.by_item(answers)

    def samples(weights: Floats) -> Floats:
        return (weights @ total) / (weights @ size)

    return samples


def _between(
    answers: Answers, first: Integers, second: Integers, distance: Floats | None = None
) -> Samples:
    """Return D_e: a pair counts the product of the weights of its items."""
    distance = answers.distance(first, second) if distance is None else distance
    first_item, second_item = (
        answers.item.astype(np.int64)[first],
        answers.item.astype(np.int64)[second],
    )

    def samples(weights: Floats) -> Floats:
        values = np.full(len(weights), np.nan)
        for row, weight in enumerate(weights):
            pair = weight[first_item] * weight[second_item]
            if pair.any():
                values[row] = (pair @ distance) / pair.sum()
        return values

    return samples


def _pair_mean(answers: Answers, within: Distances, value: Floats) -> Samples:
    """Return the mean of a value over all pairs of answers."""
    item = answers.item.astype(np.int64)[within.first]
    total = np.bincount(item, value, minlength=answers.n_items)
    count = np.bincount(item, minlength=answers.n_items).astype(float)

    def samples(weights: Floats) -> Floats:
        return (weights @ total) / (weights @ count)

    return samples


def _pooled_f1(spans: Spans) -> Samples:
    """Return the F1 of all pairs of answers together, of the same spans with the same label."""
    key = np.column_stack([spans.mark_item, spans.place, spans.label])
    kind, count = np.unique(key, axis=0, return_counts=True)
    n = spans.n_items
    equal = np.bincount(kind[:, 0].astype(np.int64), count * (count - 1), minlength=n)
    marks = np.bincount(spans.mark_item, minlength=n)
    possible = marks * (spans.labels_per_item - 1.0)

    def samples(weights: Floats) -> Floats:
        total = weights @ possible
        return np.divide(weights @ equal, total, out=np.full(len(total), np.nan), where=total > 0)

    return samples


def _nominal_alpha(counts: Floats, length: Floats, item: Integers, n_items: int) -> Samples:
    """Return Krippendorff's alpha of classes from counts, (unit, class), of units on items."""
    size = counts.sum(axis=1)
    differing = length * (size - (counts**2).sum(axis=1) / np.where(size > 0, size, 1)) * size
    differing = np.divide(differing, size - 1, out=np.zeros(len(size)), where=size > 1)
    observed = np.bincount(item, differing, minlength=n_items)
    classes = np.stack(
        [np.bincount(item, length * count, minlength=n_items) for count in counts.T], axis=1
    )

    def samples(weights: Floats) -> Floats:
        total = weights @ classes  # (sample, class)
        size = total.sum(axis=1)
        expected = size**2 - (total**2).sum(axis=1)
        expected = np.divide(expected, size - 1, out=np.zeros(len(size)), where=size > 1)
        return _alpha(weights @ observed, expected)

    return samples


def _token_alpha(spans: Spans) -> Samples:
    """Return the alpha of tokens: the label of a mark on it, or none."""
    place, item = spans.place.astype(np.int64), spans.mark_item
    width = int(place.max()) + 2
    border = np.concatenate([item * width, item * width + place[:, 0], item * width + place[:, 1]])
    cut = np.unique(border)
    where = cut // width
    follows = np.append(where[1:] == where[:-1], False)
    length = np.where(follows, np.append(np.diff(cut), 0), 0).astype(float)
    low, high = (np.searchsorted(cut, item * width + place[:, side]) for side in (0, 1))
    covered = high - low
    segment = np.repeat(low, covered) + count_up(covered)
    answer, label = np.repeat(spans.answer, covered), np.repeat(spans.label, covered)
    _, cells = np.unique(answer * len(cut) + segment, return_index=True)  # of nested marks, one
    n_labels = len(spans.classes)
    counts = np.zeros((len(cut), n_labels + 1))
    np.add.at(counts, (segment[cells], label[cells]), 1)
    counts[:, n_labels] = spans.labels_per_item[where] - counts.sum(axis=1)
    nonempty = length > 0
    return _nominal_alpha(counts[nonempty], length[nonempty], where[nonempty], spans.n_items)


def _option_alpha(sets: Sets) -> Samples:
    """Return the mean over options of the alpha of chosen or not."""
    item, n = sets.item.astype(np.int64), sets.n_items
    n_chosen = np.zeros((n, sets.n_options))
    np.add.at(n_chosen, (item[sets.answer], sets.option), 1)
    size = sets.labels_per_item.astype(float)
    alphas = [
        _nominal_alpha(np.column_stack([yes, size - yes]), np.ones(n), np.arange(n), n)
        for yes in n_chosen.T
        if 0 < yes.sum() < size.sum()
    ]

    def samples(weights: Floats) -> Floats:
        if not alphas:
            return np.ones(len(weights))
        return np.nanmean([alpha(weights) for alpha in alphas], axis=0)

    return samples
