"""Annotator behaviour without reference to the truth: amount, variety, agreement and speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from .._probability import normalize
from .._relation import Array, Floats, FrozenArrays, Integers
from ..annotations import Annotations
from .label_sums import agreement_with_others, median_by


@dataclass(frozen=True, eq=False)
class Behaviour(FrozenArrays):
    """Behaviour of every annotator.

    Attributes
    ----------
    labels
        Number of labels.
    classes_used
        Number of different classes.
    top_share
        Share of the most frequent class.
    entropy
        Entropy of the labels in nats: 0 for one class only.
    longest_run
        Longest run of equal labels in the order of time; NaN without times.
    seconds
        Median seconds per label; NaN without durations.
    agreement
        Share of label pairs with other annotators that are equal; NaN without any.
    """

    labels: Integers  # (annotator), as all others
    classes_used: Integers
    top_share: Floats
    entropy: Floats
    longest_run: Floats
    seconds: Floats
    agreement: Floats


def annotator_behaviour(annotations: Annotations) -> Behaviour:
    """Return the behaviour of every annotator."""
    cell = annotations.annotator.astype(np.int64) * annotations.n_classes + annotations.label
    counts = np.bincount(cell, minlength=annotations.n_annotators * annotations.n_classes)
    counts = counts.reshape(annotations.n_annotators, annotations.n_classes)
    labels = annotations.labels_per_annotator
    marginals = normalize(counts.astype(float))
    return Behaviour(
        labels,
        (counts > 0).sum(axis=1),
        np.where(labels > 0, marginals.max(axis=1, initial=0.0), np.nan),
        np.where(labels > 0, entr(marginals).sum(axis=1), np.nan),
        longest_runs(annotations),
        _median_seconds(annotations),
        agreement_with_others(annotations),
    )


def time_order(annotations: Annotations) -> Integers | None:
    """Return annotations by position, sorted by annotator, then time; `None` without times.

    Annotations without a time are left out, and so are texts that do not parse as times.
    """
    time = annotations.columns.get("time")
    if time is None or time.dtype.kind not in "iufM":
        return None
    known = np.flatnonzero(_known(time))
    return known[np.lexsort((time[known], annotations.annotator[known]))]


def longest_runs(annotations: Annotations) -> Floats:
    """Return the longest run of equal labels of every annotator in the order of time.

    >>> annotations = Annotations.from_columns("abcd", "xxxx", "0110", time=[1, 4, 3, 2])
    >>> longest_runs(annotations).tolist()
    [2.0]
    """
    longest = np.full(annotations.n_annotators, np.nan)
    order = time_order(annotations)
    if order is None or len(order) == 0:
        return longest
    annotator, label = annotations.annotator[order], annotations.label[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (annotator[1:] != annotator[:-1]) | (label[1:] != label[:-1])
    position = np.flatnonzero(begins)
    length = np.diff(np.append(position, len(order))).astype(float)
    np.fmax.at(longest, annotator[position], length)
    return longest


def _median_seconds(annotations: Annotations) -> Floats:
    duration = annotations.columns.get("duration")
    if duration is None or duration.dtype.kind not in "iufm":
        return np.full(annotations.n_annotators, np.nan)
    known = np.flatnonzero(_known(duration))
    seconds = duration[known]
    if seconds.dtype.kind == "m":
        seconds = seconds / np.timedelta64(1, "s")
    return median_by(annotations.annotator[known], seconds.astype(float), annotations.n_annotators)


def _known(values: Array) -> Array:
    if values.dtype.kind in "Mm":
        return ~np.isnat(values)
    return np.ones(len(values), dtype=bool) if values.dtype.kind in "iu" else ~np.isnan(values)
