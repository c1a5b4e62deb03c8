"""When labels were given, and how long it took: speed that nobody can have."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._relation import Array, Floats, Integers
from ._finding import KNOWING, SERIOUS, CheckContext, Finding, many, quoted, verb

__all__ = ["check_durations", "check_times", "seconds"]

_ENOUGH = 10  # labels of an annotator to speak of their speed
_FASTER = 5  # times as fast as the others
_RUN = 20  # labels in a row
_GLANCE = 0.5  # seconds for a label that nobody can keep up
_DAY = 86400.0


def seconds(values: Array) -> Floats | None:
    """Return times as seconds; whole numbers may count seconds or their parts since 1970."""
    if values.dtype.kind == "M":
        known = ~np.isnat(values)
        found = np.full(len(values), np.nan)
        found[known] = values[known].astype("datetime64[us]").astype(np.int64) / 1e6
        return found
    if values.dtype.kind not in "iuf":
        return None
    found = values.astype(np.float64)
    size = float(np.nanmax(np.abs(found), initial=0))
    for least, parts in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)):
        if size > least:
            return found / parts
    return found


def check_durations(context: CheckContext) -> Iterator[Finding]:
    """Find durations that cannot be, and annotators who are far faster than the others."""
    given = context.annotations.columns.get("duration")
    if given is None or len(given) == 0:
        return
    if given.dtype.kind not in "iuf":
        yield _unreadable("duration", given)
        return
    spent = given.astype(np.float64)
    wrong = np.flatnonzero((spent <= 0) | (spent > 10 * _DAY))
    if len(wrong):
        yield Finding(
            "impossible-durations",
            KNOWING,
            f"{many(len(wrong), 'duration')} {verb(len(wrong), 'are')} zero, below, or longer than "
            "ten days.",
            len(wrong),
            tuple(f"{spent[row]:g} s" for row in wrong[:3]),
            "look at the clock that measured them; other durations are in seconds",
        )
    fine = np.isfinite(spent) & (spent > 0)
    annotator, median = _medians(context.annotations.annotator[fine].astype(np.int64), spent[fine])
    if len(annotator) < 3:
        return
    usual = float(np.median(median))
    fast = np.flatnonzero(median * _FASTER < usual)
    if len(fast):
        order = fast[np.argsort(median[fast], kind="stable")]
        yield Finding(
            "fast-annotators",
            KNOWING,
            f"{many(len(fast), 'annotator')} {verb(len(fast), 'take')} less than a fifth of the "
            f"usual {usual:.3g} s for a label.",
            len(fast),
            tuple(
                f"{context.name('annotators', annotator[one])}: {median[one]:.2g} s"
                for one in order[:3]
            ),
            "look at their labels; `dissensus identify` shows how good they are",
        )


def check_times(context: CheckContext) -> Iterator[Finding]:
    """Find labels that followed each other faster than anybody can look."""
    given = context.annotations.columns.get("time")
    if given is None or len(given) == 0:
        return
    when = seconds(given)
    if when is None:
        yield _unreadable("time", given)
        return
    known = np.isfinite(when)
    annotator = context.annotations.annotator[known].astype(np.int64)
    when = when[known]
    order = np.lexsort((when, annotator))
    annotator, when = annotator[order], when[order]
    if len(annotator) < 2:
        return
    mine = np.diff(annotator) == 0
    together = mine & (np.diff(when) == 0)
    share = together.sum() / max(mine.sum(), 1)
    if share > 0.2:
        yield Finding(
            "same-time",
            KNOWING,
            f"{share:.0%} of the labels have the same time as another by the same annotator.",
            int(together.sum()),
            remedy="times of pages, it seems: they say nothing about the speed of a label",
        )
        return
    yield from _bursts(context, annotator, when)


def _bursts(context: CheckContext, annotator: Integers, when: Floats) -> Iterator[Finding]:
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
    labels = np.bincount(annotator[covered], minlength=context.annotations.n_annotators)
    people = np.argsort(-labels, kind="stable")[: int((labels > 0).sum())]
    total = int(covered.sum())
    yield Finding(
        "bursts",
        SERIOUS if total > 0.05 * len(context.annotations) else KNOWING,
        f"{total} labels by {many(len(people), 'annotator')} came in runs of {_RUN} and more at "
        f"less than {_GLANCE} s each.",
        total,
        tuple(f"{context.name('annotators', one)} ({labels[one]} labels)" for one in people[:3]),
        "nobody can look that fast: a script, or labels that were sent again",
    )


def _medians(annotator: Integers, spent: Floats) -> tuple[Integers, Floats]:
    """Return annotators with enough labels, and the median of each."""
    order = np.lexsort((spent, annotator))
    annotator, spent = annotator[order], spent[order]
    people, start, size = np.unique(annotator, return_index=True, return_counts=True)
    middle = (spent[start + (size - 1) // 2] + spent[start + size // 2]) / 2
    enough = size >= _ENOUGH
    return people[enough], middle[enough]


def _unreadable(name: str, given: Array) -> Finding:
    return Finding(
        "unreadable-times",
        KNOWING,
        f"The column {name} could not be read as numbers or times.",
        len(given),
        (quoted(given[0]),),
        "write seconds, or times as 2026-01-31T12:00:00",
    )
