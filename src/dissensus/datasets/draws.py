"""The two ways to draw who answers what: item by item, or all at once.

All at once, chunks of items are drawn on all cores, each with a random stream of its own. The
chunks depend on the plan alone, so the answers do not depend on the number of threads. Truth and
crowd are those of the draws one by one; the assignment and the answers are not.

One by one is the order of draws that peerannot's published tables come from. For every item: the
free annotators, how many and which of them, and their answers. With the same seed this gives the
same answers as the generators of

    T. Lefort, B. Charlier, A. Joly, J. Salmon. Peerannot: classification for crowdsourced image
    datasets with Python. Computo, 2024. doi:10.57750/qmaz-gr91
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..base.arrays import Array, smallest_dtype
from ..errors import OptionError
from .strategy import Asked, CrowdParameters, Design, Labels, Strategy, assign_loads, drawn, loads

_CELLS = 2**21  # numbers in the largest array of a chunk: small enough for the caches
_THREADS = os.cpu_count() or 1


def all_at_once(
    strategy: Strategy,
    design: Design,
    crowd: CrowdParameters,
    truth: Array,
    progress: Callable[[int, int], None],
) -> Labels:
    """Return the answers, drawn chunk by chunk."""
    n_items, most = design.n_items, design.most
    if n_items * most > design.cap * design.n_annotators:
        raise OptionError(
            f"{n_items} items with {most} labels each are more than {design.n_annotators} "
            f"annotators with workerload = {design.cap} can give; lower feedback to "
            f"{design.cap * design.n_annotators // n_items} or raise workerload"
        )
    chunk = max(1, _CELLS // max(most * design.n_classes, 2 * most))
    firsts = range(0, n_items, chunk)
    seed, *seeds = np.random.SeedSequence(design.seed).spawn(1 + len(firsts))
    rng = np.random.default_rng(seed)

    starts = np.zeros(n_items + 1, dtype=np.int64)
    size = rng.integers(most, size=n_items) + 1 if design.imbalance else np.full(n_items, most)
    np.cumsum(size, out=starts[1:])
    assigned = None
    if design.cap < n_items:
        assigned = assign_loads(
            n_items, loads(n_items * most, design.cap, design.n_annotators, rng), rng
        )
    annotators = np.empty(starts[-1], dtype=smallest_dtype(design.n_annotators))
    kind = np.dtype(np.float64) if strategy.numeric else smallest_dtype(design.n_classes)
    answers = np.empty(starts[-1], dtype=kind)

    def work(start: int, seed: np.random.SeedSequence) -> int:
        stop = min(start + chunk, n_items)
        rng = np.random.default_rng(seed)
        if assigned is None:
            rows = drawn(stop - start, most, design.n_annotators, rng)
        else:
            rows = assigned[start:stop]
        if design.imbalance:
            rng.permuted(rows, axis=1, out=rows)
            dropped = np.arange(most) >= size[start:stop, None]
            rows = rows.astype(np.int64)
            rows[dropped] = design.n_annotators
            rows.sort(axis=1)
            annotator = rows[rows < design.n_annotators]
        else:
            annotator = rows.ravel()
        item = np.repeat(np.arange(start, stop), size[start:stop])
        span = slice(starts[start], starts[stop])
        annotators[span] = annotator
        answers[span] = strategy.answers(crowd, Asked(item, annotator, truth[item]), rng)
        return stop

    with ThreadPoolExecutor(_THREADS) as pool:
        for n_done in pool.map(work, firsts, seeds):
            progress(n_done, n_items)
    return Labels(starts, annotators, answers)


def one_by_one(
    strategy: Strategy,
    design: Design,
    crowd: CrowdParameters,
    truth: Array,
    rng: np.random.Generator,
    progress: Callable[[int, int], None],
) -> Labels:
    """Return the answers, drawn item by item."""
    load = np.zeros(design.n_annotators, dtype=np.int64)
    starts = np.zeros(design.n_items + 1, dtype=np.int64)
    annotators, answers = [], []
    for item in range(design.n_items):
        free = np.flatnonzero(load < design.cap)
        size = min(design.most, len(free))
        if size == 0:
            raise OptionError(
                f"no annotator is left for item {item}: all have given {design.cap} labels; "
                "raise workerload or lower feedback"
            )
        if design.imbalance:
            size = int(rng.choice(size)) + 1
        annotator = rng.choice(free, replace=False, size=size)
        pairs = Asked(np.full(size, item), annotator, np.full(size, truth[item]))
        answer = strategy.answers(crowd, pairs, rng)
        load[annotator] += 1
        starts[item + 1] = starts[item] + size
        order = annotator.argsort()
        annotators.append(annotator[order])
        answers.append(answer[order])
        progress(item + 1, design.n_items)
    kind = np.dtype(np.float64) if strategy.numeric else smallest_dtype(design.n_classes)
    return Labels(
        starts,
        np.concatenate(annotators).astype(smallest_dtype(design.n_annotators)),
        np.concatenate(answers).astype(kind),
    )
