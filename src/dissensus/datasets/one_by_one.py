"""One item after the other: the order of draws that peerannot's published tables come from.

For every item: the free annotators, how many and which of them, and their answers. With the same
seed this gives the same answers as the generators of

    T. Lefort, B. Charlier, A. Joly, J. Salmon. Peerannot: classification for crowdsourced image
    datasets with Python. Computo, 2024. doi:10.57750/qmaz-gr91
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base.arrays import Array, smallest_dtype
from ..errors import OptionError
from .strategy import Answers, Asked, CrowdParameters, Design, Strategy


def one_by_one(
    strategy: Strategy,
    design: Design,
    crowd: CrowdParameters,
    truth: Array,
    rng: np.random.Generator,
    progress: Callable[[int, int], None],
) -> Answers:
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
        asked = Asked(np.full(size, item), annotator, np.full(size, truth[item]))
        answer = strategy.answers(crowd, asked, rng)
        load[annotator] += 1
        starts[item + 1] = starts[item] + size
        order = annotator.argsort()
        annotators.append(annotator[order])
        answers.append(answer[order])
        progress(item + 1, design.n_items)
    kind = np.dtype(np.float64) if strategy.numeric else smallest_dtype(design.n_classes)
    return Answers(
        starts,
        np.concatenate(annotators).astype(smallest_dtype(design.n_annotators)),
        np.concatenate(answers).astype(kind),
    )
