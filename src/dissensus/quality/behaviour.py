"""Annotator behaviour without reference to the truth: amount, variety, agreement and speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from ..base.names import Names, as_names, decode
from ..base.arrays import Array, Floats, FrozenArrays, Integers
from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..answers.numbers import Numbers
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
    top_code, top_label
        The most frequent class or value.
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
    top_code: Integers
    top_label: Names
    entropy: Floats
    longest_run: Floats
    seconds: Floats
    agreement: Floats


def annotator_behaviour(annotations: Annotations | Numbers) -> Behaviour:
    """Return the behaviour of every annotator."""
    codes, values = answer_codes(annotations)
    n, n_values = annotations.n_annotators, max(len(values), 1)
    cell, count = np.unique(annotations.annotator * np.int64(n_values) + codes, return_counts=True)
    owner, labels = cell // n_values, annotations.labels_per_annotator
    order = np.lexsort((-cell, count, owner))
    top = np.full(n, -1)
    top[owner[order]] = cell[order] % n_values  # the last of an annotator is the most frequent
    share = count / labels[owner]
    largest = np.zeros(n)
    np.maximum.at(largest, owner, share)
    agreement = np.full(n, np.nan)
    if isinstance(annotations, Annotations):
        agreement = agreement_with_others(annotations)
    return Behaviour(
        labels,
        np.bincount(owner, minlength=n),
        np.where(labels > 0, largest, np.nan),
        top,
        decode(values, top),
        np.where(labels > 0, np.bincount(owner, entr(share), n), np.nan),
        longest_runs(annotations),
        _median_seconds(annotations),
        agreement,
    )


def answer_codes(annotations: Annotations | Numbers) -> tuple[Array, Names]:
    """Return the code of every answer, and the classes or different values as texts."""
    if isinstance(annotations, Annotations):
        return annotations.label, annotations.classes
    values, codes = np.unique(annotations.value, return_inverse=True)
    return codes, as_names([f"{value:g}" for value in values.tolist()])


def time_order(annotations: Relation) -> Integers | None:
    """Return annotations by position, sorted by annotator, then time; `None` without times.

    Annotations without a time are left out, and so are texts that do not parse as times.
    """
    time = annotations.columns.get("time")
    if time is None or time.dtype.kind not in "iufM":
        return None
    known = np.flatnonzero(_known(time))
    return known[np.lexsort((time[known], annotations.annotator[known]))]


def longest_runs(annotations: Annotations | Numbers) -> Floats:
    """Return the longest run of equal labels of every annotator in the order of time.

    >>> annotations = Annotations.from_columns("abcd", "xxxx", "0110", time=[1, 4, 3, 2])
    >>> longest_runs(annotations).tolist()
    [2.0]
    """
    longest = np.full(annotations.n_annotators, np.nan)
    order = time_order(annotations)
    if order is None or len(order) == 0:
        return longest
    annotator, label = annotations.annotator[order], answer_codes(annotations)[0][order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (annotator[1:] != annotator[:-1]) | (label[1:] != label[:-1])
    position = np.flatnonzero(begins)
    length = np.diff(np.append(position, len(order))).astype(float)
    np.fmax.at(longest, annotator[position], length)
    return longest


def _median_seconds(annotations: Relation) -> Floats:
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
