"""Gamma of spans: how well two annotators' spans can be aligned, compared with shuffled ones.

Two spans differ by ((|s1 - s2| + |e1 - e2|) / (length 1 + length 2))², and by 1 more with another
label; a span without partner costs 1. The disorder of two annotators is the cost of the best
alignment over their mean number of spans. Gamma is 1 - observed / expected disorder, and here the
mean over pairs of annotators. Shuffled spans are those of the same item, whose timelines are cut at
random positions and rotated.

    Y. Mathet, A. Widlöcher, J.-P. Métivier. The unified and holistic method gamma for
    inter-annotator agreement measure and alignment. Computational Linguistics 41(3), 2015.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base.arrays import Floats, Integers
from ..answers.marks import Spans
from ..answers.matching import best_match

_SHUFFLES = 30
_PAIRS = 20_000  # of all shuffles together
_CELLS = 2**22  # pairs of spans at a time


def gamma_samples(
    spans: Spans, first: Integers, second: Integers, rng: np.random.Generator
) -> Callable[[Floats], Floats]:
    """Return gamma as a function of weights of items, (sample, item), to values: (sample)."""
    some = spans.sizes[first] + spans.sizes[second] > 0
    first, second = first[some], second[some]
    item = spans.item.astype(np.int64)[first]
    observed = disorder(spans, spans.place, first, second)
    chosen, shuffled = _shuffled(spans, first, second, rng)
    n = spans.n_items
    found = np.bincount(item, observed, minlength=n), np.bincount(item, minlength=n)
    by_item = np.bincount(item[chosen], shuffled, minlength=n)
    expected = by_item, np.bincount(item[chosen], minlength=n)

    def samples(weights: Floats) -> Floats:
        mean = [
            np.divide(
                weights @ total,
                weights @ count,
                out=np.full(len(weights), np.nan),
                where=weights @ count > 0,
            )
            for total, count in (found, expected)
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
    upto, start = np.cumsum(cells), 0
    while start < len(first):
        before = upto[start - 1] if start else 0
        stop = max(int(np.searchsorted(upto, before + _CELLS, side="right")), start + 1)
        pair, one, two = spans.mark_pairs(first[start:stop], second[start:stop])
        apart = np.abs(place[one] - place[two]).sum(axis=1)
        both = (place[one, 1] - place[one, 0]) + (place[two, 1] - place[two, 0])
        gain = 2 - (apart / both) ** 2 - (spans.label[one] != spans.label[two])
        near = gain > 0
        saved[start:stop] = best_match(pair[near], one[near], two[near], gain[near], stop - start)
        start = stop
    return (sizes - saved) / (sizes / 2)


def _shuffled(
    spans: Spans, first: Integers, second: Integers, rng: np.random.Generator
) -> tuple[Integers, Floats]:
    """Return pairs of answers with the disorder of their shuffled spans."""
    per_shuffle = min(len(first), max(_PAIRS // _SHUFFLES, 1))
    item = spans.item.astype(np.int64)
    end = np.zeros(spans.n_items)
    np.maximum.at(end, spans.mark_item, spans.place[:, 1])
    length = np.maximum(end, 1.0)[spans.mark_item]
    size = spans.place[:, 1] - spans.place[:, 0]
    chosen, found = [], []
    for _ in range(_SHUFFLES):
        cut = rng.random(len(item))[spans.answer]
        start = (spans.place[:, 0] + np.floor(cut * length)) % length
        place = np.column_stack([start, start + size])
        at = rng.choice(len(first), per_shuffle, replace=False)
        chosen.append(at)
        found.append(disorder(spans, place, first[at], second[at]))
    return np.concatenate(chosen), np.concatenate(found)
