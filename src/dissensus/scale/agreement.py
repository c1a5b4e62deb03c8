"""Agreement from shards: items with the same counts of labels are counted together.

Percent agreement, alpha, the kappas of Fleiss and Randolph, Gwet's coefficients and the like depend
on the counts of an item's labels alone. So every shard returns its distinct counts and how often
they occur, and the rest is done as for annotations in memory, with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..metrics.coefficients import find_measure
from ..metrics.statistics import WeightsLike
from ..metrics.agreement import USUAL, Resampling, check_scale, estimated
from ..metrics.intervals import IntervalKind, check_interval
from ..metrics.joint import JointMeasures
from ..metrics.agreement_result import Estimate
from ..metrics.votes import Votes
from ..answers.annotations import Annotations, Floats, Integers, Part
from ..base.engine import Engine
from ..errors import OptionError
from .shards import ShardedAnnotations


def agree_shards(
    annotations: ShardedAnnotations,
    engine: Engine,
    measures: Sequence[str] = USUAL,
    *,
    scale: WeightsLike = "auto",
    weights: WeightsLike | None = None,
    resamples: int = 1000,
    confidence: float = 0.95,
    interval: IntervalKind = "percentile",
    seed: int = 0,
) -> tuple[Estimate, ...]:
    """Return the agreement in several measures; parameters as in `agree`."""
    check_interval(resamples, confidence, interval)
    chosen = [find_measure(name) for name in measures]
    for measure in chosen:
        if measure.by_pairs or measure.name == "conger":
            raise OptionError(
                f"{measure.name} looks at pairs of annotators, so it needs all in memory"
            )
    counts, times = np.zeros((0, annotations.n_classes)), np.zeros(0, dtype=np.int64)
    for more, often in engine.each(_patterns, annotations.shards):
        counts, times = _together(np.vstack([counts, more]), np.concatenate([times, often]))
    scale = check_scale(scale, annotations.scale)
    one = np.zeros(1, dtype=np.int64)  # only the classes of these annotations matter
    alike = Annotations.from_codes(
        one, one, one, items=1, annotators=1, classes=annotations.classes
    )
    joint = JointMeasures(alike, chosen, scale=scale, weights=weights, votes=Votes(counts, times))
    settings = Resampling(resamples, confidence, interval, seed, lambda *_: None)
    return estimated([joint], settings)[0]


def _patterns(part: Part) -> tuple[Floats, Integers]:
    """Return the different counts of labels on an item, and how many items have them."""
    return _together(part.votes(), np.ones(part.stop - part.start, dtype=np.int64))


def _together(counts: Floats, times: Integers) -> tuple[Floats, Integers]:
    different, position = np.unique(counts, axis=0, return_inverse=True)
    return different, np.bincount(position, times, minlength=len(different)).astype(np.int64)
