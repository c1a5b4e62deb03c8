"""What verdicts on annotators rest on, the same for classes, ordered labels and numbers.

Classes are compared with the shares of the others' labels, ordered labels and numbers with the mean
of the others under a model of severity and scale use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from ..base.arrays import Array, Floats, Integers
from ..answers.annotations import Annotations
from ..answers.base import Relation
from .behaviour import Behaviour
from .correlation import class_correlation, known_chunks, log_typical
from .correlations import rating_correlations
from .leave_one_out import has_other_labels, leave_one_out_votes
from .random_annotators import Following, following
from .rater_model import RaterModel, fit_rater_model

ENOUGH = 10  # labels for a verdict; known items for one by them
ONE_ANSWER = 0.95  # share of one answer from which on it is always given
_ORDINARY = 0.5  # highest probability of random answers of those whose median is usual
_CONFIDENCE = 0.99  # of the intervals of styles
_LEAST_SLOPE = 0.25  # of the median, where it divides noise


class Bounded(NamedTuple):
    """Estimates with the bounds of their intervals; NaN where undefined."""

    value: Floats  # (annotator)
    low: Floats
    high: Floats


class Styles(NamedTuple):
    """How annotators use an ordered scale, relative to the median annotator; 99 % intervals."""

    level: Bounded  # of labels, in their standard deviations: below 0 harsh, above lenient
    slope: Bounded  # below 1 central, above extreme
    noise: Bounded  # standard deviation of what the items leave unexplained, over the slope


class Evidence(NamedTuple):
    """What verdicts rest on."""

    following: Following
    log_typical: Floats  # (annotator): log probability that a typical annotator answers so alike
    n_minor: Floats  # (annotator): labels outside the commonest class, by them or the others
    gold_z: Floats  # (annotator): correlation with known items, in standard deviations; NaN if few
    gold_labels: Integers  # (annotator): on known items
    styles: Styles | None


def class_evidence(
    annotations: Annotations, behaviour: Behaviour, known: Integers | None
) -> Evidence:
    """Return the evidence on annotators who give classes."""
    votes = leave_one_out_votes(annotations, known)
    compared = has_other_labels(annotations, known)
    found = class_correlation(annotations, compared, votes.chunks())
    follow = following(found.correlation, found.size, found.n_labels.astype(float))
    steady = behaviour.top_share >= ONE_ANSWER
    typical = np.zeros(annotations.n_annotators)
    if steady.any():
        counts = votes.comparison.counts
        typical = log_typical(annotations, votes.chunks(), counts, steady, behaviour.top_code)
    gold_z = np.full(annotations.n_annotators, np.nan)
    gold_labels = np.zeros(annotations.n_annotators, dtype=np.int64)
    if known is not None:
        of_known = known[annotations.item] >= 0
        gold = class_correlation(annotations, of_known, known_chunks(annotations, known))
        gold_z, gold_labels = gold.correlation * np.sqrt(gold.size - 1), gold.n_labels
    return Evidence(
        follow, typical, found.n_minor, _if_enough(gold_z, gold_labels), gold_labels, None
    )


def rating_evidence(
    answers: Relation, value: Floats, behaviour: Behaviour, known: Floats | None
) -> Evidence:
    """Return the evidence on annotators who rate items on an ordered scale or with numbers."""
    n = answers.n_annotators
    model = fit_rater_model(answers, value, known)
    count = model.n_answers.astype(float)
    follow = following(model.correlation, count, count)
    enough = behaviour.labels >= ENOUGH
    often = np.quantile(behaviour.top_share[enough], 0.75) if enough.any() else 1.0
    typical = count * np.log(0.5 + 0.5 * float(often))
    gold_z, gold_labels = np.full(n, np.nan), np.zeros(n, dtype=np.int64)
    if known is not None:
        truth = known[answers.item]
        kept = np.isfinite(truth)
        annotator, own, truth = answers.annotator[kept].astype(np.int64), value[kept], truth[kept]
        gold_labels = np.bincount(annotator, minlength=n)
        gold_z = rating_correlations(annotator, own, truth, n) * np.sqrt(gold_labels - 1.0).clip(0)
    return Evidence(
        follow,
        typical,
        np.full(n, np.inf),
        _if_enough(gold_z, gold_labels),
        gold_labels,
        _styles(model, follow),
    )


def rating_scores(annotations: Annotations) -> Floats:
    """Return ordered classes as 0, 1, 2, …: (class); those that are numbers in their order.

    >>> classes = ["2", "10", "1"]
    >>> rating_scores(Annotations.from_columns("a", "x", ["1"], classes=classes)).tolist()
    [1.0, 2.0, 0.0]
    """
    names = annotations.classes.tolist()
    try:
        value: Array = np.array([float(name) for name in names])
    except ValueError:
        return np.arange(len(names), dtype=float)
    return np.argsort(np.argsort(value, kind="stable"), kind="stable").astype(float)


def _if_enough(z: Floats, n_labels: Integers) -> Floats:
    return np.where(n_labels >= ENOUGH, z, np.nan)


def _styles(model: RaterModel, follow: Following) -> Styles:
    """Return level, slope and noise relative to the medians of those who are not random."""
    ordinary = (model.n_answers >= ENOUGH) & (follow.p_random < _ORDINARY)

    def median(values: Floats) -> float:
        values = values[ordinary & np.isfinite(values)]
        return float(np.median(values)) if len(values) else np.nan

    level = model.level - median(model.level)
    reach = model.level_error
    slope = median(model.slope)
    slope = slope if slope > 0 else np.nan
    relative = model.noise / np.maximum(model.slope, _LEAST_SLOPE * slope)
    noise = median(relative)
    noise = noise if noise > 0 else np.nan
    freedom = np.maximum(model.n_answers - 2.0, 1.0)
    tails = ((1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2)
    low, high = (np.sqrt(freedom / chdtri(freedom, tail)) for tail in tails)
    return Styles(
        Bounded(level, level - reach, level + reach),
        Bounded(
            *((model.slope + one) / slope for one in (0, -model.slope_error, model.slope_error))
        ),
        Bounded(*(relative * one / noise for one in (1, low, high))),
    )
