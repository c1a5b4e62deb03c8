"""What annotators do, before anybody asks whether it is right: how much, how varied, how fast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import entr

from .._probability import normalize
from .._relation import Array, Floats, Integers, frozen
from ..annotations import Annotations
from ._tally import agreement_with_others, by_annotator
from .leave_one_out import heard_others

__all__ = ["Habits", "habits", "in_time", "longest_runs", "medians", "pair_agreement"]


@dataclass(frozen=True, eq=False)
class Habits:
    """What every annotator does.

    Attributes
    ----------
    labels
        How many labels.
    classes_used
        How many different classes.
    top_share
        The share of the class they give most.
    entropy
        Of their labels, in nats: 0 for somebody who gives one class only.
    longest_run
        Most equal labels in a row, in the order of time; NaN where no time is known.
    seconds
        Median time for a label; NaN where no duration is known.
    agreement
        The share of meetings with labels of others in which both say the same; NaN without any.
    """

    labels: Integers  # (annotator), and so is what follows
    classes_used: Integers
    top_share: Floats
    entropy: Floats
    longest_run: Floats
    seconds: Floats
    agreement: Floats

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            object.__setattr__(self, name, frozen(value))


def habits(annotations: Annotations) -> Habits:
    """Return what every annotator does."""
    cell = annotations.annotator.astype(np.int64) * annotations.n_classes + annotations.label
    counts = np.bincount(cell, minlength=annotations.n_annotators * annotations.n_classes)
    counts = counts.reshape(annotations.n_annotators, annotations.n_classes)
    labels = annotations.labels_per_annotator
    silent = labels == 0
    used = normalize(counts.astype(float))
    return Habits(
        labels,
        (counts > 0).sum(axis=1),
        np.where(silent, np.nan, used.max(axis=1, initial=0.0)),
        np.where(silent, np.nan, entr(used).sum(axis=1)),
        longest_runs(annotations),
        medians(annotations),
        pair_agreement(annotations),
    )


def in_time(annotations: Annotations) -> Integers | None:
    """Return annotations by place, sorted by annotator, then time; `None` where no time is known.

    Annotations without a time are left out. Texts that do not read as times are not times.
    """
    time = annotations.columns.get("time")
    if time is None or time.dtype.kind not in "iufM":
        return None
    known = np.flatnonzero(_known(time))
    return known[np.lexsort((time[known], annotations.annotator[known]))]


def longest_runs(annotations: Annotations) -> Floats:
    """Return the most equal labels in a row that every annotator gave, in the order of time.

    >>> annotations = Annotations.from_columns("abcd", "xxxx", "0110", time=[1, 4, 3, 2])
    >>> longest_runs(annotations).tolist()
    [2.0]
    """
    longest = np.full(annotations.n_annotators, np.nan)
    order = in_time(annotations)
    if order is None or len(order) == 0:
        return longest
    who, what = annotations.annotator[order], annotations.label[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (who[1:] != who[:-1]) | (what[1:] != what[:-1])
    position = np.flatnonzero(begins)
    np.fmax.at(longest, who[position], np.diff(np.append(position, len(order))).astype(float))
    return longest


def medians(annotations: Annotations) -> Floats:
    """Return the median seconds that every annotator took for a label."""
    middle = np.full(annotations.n_annotators, np.nan)
    given = annotations.columns.get("duration")
    if given is None or given.dtype.kind not in "iufm":
        return middle
    known = np.flatnonzero(_known(given))
    seconds = given[known]
    if seconds.dtype.kind == "m":
        seconds = seconds / np.timedelta64(1, "s")
    seconds, who = seconds.astype(float), annotations.annotator[known]
    order = np.lexsort((seconds, who))
    count = np.bincount(who, minlength=annotations.n_annotators)
    start = np.cumsum(count) - count
    some = count > 0
    low = order[start[some] + (count[some] - 1) // 2]
    high = order[start[some] + count[some] // 2]
    middle[some] = (seconds[low] + seconds[high]) / 2
    return middle


def pair_agreement(annotations: Annotations) -> Floats:
    """Return how often every annotator says the same as somebody else about the same item.

    >>> pair_agreement(Annotations.from_columns("aaabbc", "xyzxyw", "001011")).round(2).tolist()
    [nan, 0.33, 0.33, 0.0]
    """
    met = by_annotator(annotations, heard_others(annotations)) > 0
    return np.where(met, agreement_with_others(annotations), np.nan)


def _known(values: Array) -> Array:
    if values.dtype.kind in "Mm":
        return ~np.isnat(values)
    return np.ones(len(values), dtype=bool) if values.dtype.kind in "iu" else ~np.isnan(values)
