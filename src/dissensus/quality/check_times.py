"""Times and durations of labels: implausible speed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..answers.base import Relation
from ..base.arrays import Array, Floats, Integers
from ..pages.sections import KNOWING, SERIOUS, Finding
from ..pages.wording import many, quoted, verb
from .label_scores import median_by

_ENOUGH = 10  # labels of an annotator to judge their speed
_FASTER = 5  # times as fast as the others
_RUN = 20  # labels in a row
_GLANCE = 0.5  # seconds for a label, too short to keep up
_DAY = 86400.0


def seconds(values: Array) -> Floats | None:
    """Return times as seconds; whole numbers count seconds or their fractions since 1970."""
    if values.dtype.kind == "M":
        defined = ~np.isnat(values)
        time = np.full(len(values), np.nan)
        time[defined] = values[defined].astype("datetime64[us]").astype(np.int64) / 1e6
        return time
    if values.dtype.kind not in "iuf":
        return None
    time = values.astype(np.float64)
    size = float(np.nanmax(np.abs(time), initial=0))
    for least, parts in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)):
        if size > least:
            return time / parts
    return time


def check_speed(annotations: Relation) -> Iterator[Finding]:
    """Find implausible durations and times, where there are any."""
    for column, check_column in (("duration", check_durations), ("time", check_times)):
        if len(annotations.columns.get(column, ())):
            yield from check_column(annotations, annotations.columns[column])


def check_durations(annotations: Relation, durations: Array) -> Iterator[Finding]:
    """Find impossible durations, and annotators who are far faster than the others."""
    if durations.dtype.kind not in "iuf":
        yield _unreadable("duration", durations)
        return
    spent = durations.astype(np.float64)
    wrong = np.flatnonzero((spent <= 0) | (spent > 10 * _DAY))
    if len(wrong):
        yield Finding(
            "impossible-durations",
            f"{many(len(wrong), 'duration')} {verb(len(wrong), 'are')} zero, below, or longer than "
            "ten days.",
            len(wrong),
            examples=tuple(f"{spent[row]:g} s" for row in wrong[:3]),
            remedy="check how they were measured; durations are in seconds",
        )
    fine = np.isfinite(spent) & (spent > 0)
    annotator, n = annotations.annotator[fine], annotations.n_annotators
    median = median_by(annotator, spent[fine], n)
    median[np.bincount(annotator, minlength=n) < _ENOUGH] = np.nan
    if np.isfinite(median).sum() < 3:
        return
    usual = float(np.nanmedian(median))
    fast = np.flatnonzero(median * _FASTER < usual)
    if len(fast):
        order = fast[np.argsort(median[fast], kind="stable")]
        yield Finding(
            "fast-annotators",
            f"{many(len(fast), 'annotator')} {verb(len(fast), 'take')} less than a fifth of the "
            f"usual {usual:.3g} s for a label.",
            len(fast),
            examples=tuple(
                f"{quoted(annotations.annotators[code])}: {median[code]:.2g} s"
                for code in order[:3]
            ),
            remedy="review their labels; `dissensus identify` scores them",
        )


def check_times(annotations: Relation, times: Array) -> Iterator[Finding]:
    """Find labels that followed each other faster than anybody can read."""
    when = seconds(times)
    if when is None:
        yield _unreadable("time", times)
        return
    defined = np.isfinite(when)
    annotator = annotations.annotator[defined].astype(np.int64)
    when = when[defined]
    order = np.lexsort((when, annotator))
    annotator, when = annotator[order], when[order]
    if len(annotator) < 2:
        return
    same_annotator = np.diff(annotator) == 0
    same_time = same_annotator & (np.diff(when) == 0)
    share = same_time.sum() / max(same_annotator.sum(), 1)
    if share > 0.2:
        yield Finding(
            "same-time",
            f"{share:.0%} of the labels have the same time as another by the same annotator.",
            int(same_time.sum()),
            remedy="probably times of pages, which do not measure the speed of a label",
        )
        return
    yield from _bursts(annotations, annotator, when)


def _bursts(annotations: Relation, annotator: Integers, when: Floats) -> Iterator[Finding]:
    if len(annotator) < _RUN:
        return
    last = _RUN - 1
    span = when[last:] - when[:-last]
    fast = (annotator[last:] == annotator[:-last]) & (span < _GLANCE * last)
    if not fast.any():
        return
    inside = np.zeros(len(annotator) + 1, dtype=np.int64)  # how many windows cover a label
    begins = np.flatnonzero(fast)
    np.add.at(inside, begins, 1)
    np.add.at(inside, begins + _RUN, -1)
    covered = np.cumsum(inside)[:-1] > 0
    labels = np.bincount(annotator[covered], minlength=annotations.n_annotators)
    fast_ones = np.argsort(-labels, kind="stable")[: int((labels > 0).sum())]
    total = int(covered.sum())
    yield Finding(
        "bursts",
        f"{total} labels by {many(len(fast_ones), 'annotator')} came in runs of {_RUN} and more at "
        f"less than {_GLANCE} s each.",
        total,
        examples=tuple(
            f"{quoted(annotations.annotators[code])} ({labels[code]} labels)"
            for code in fast_ones[:3]
        ),
        remedy="too fast to read: a script, or labels that were sent again",
        severity=SERIOUS if total > 0.05 * len(annotations) else KNOWING,
    )


def _unreadable(name: str, values: Array) -> Finding:
    return Finding(
        "unreadable-times",
        f"The column {name} could not be read as numbers or times.",
        len(values),
        examples=(quoted(values[0]),),
        remedy="write seconds, or times as 2026-01-31T12:00:00",
    )
