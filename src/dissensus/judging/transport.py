"""Whether a correction still holds for another group, or later.

A line g is fitted on the reference group, from the judge's value to people's. In any other group
with labels of its own, the mean of y - g(f) should be zero. The intervals are those of a t-test
over clusters. An alarm also counts that g was estimated, and the false discovery rate over groups
is controlled (Benjamini & Hochberg). Over time, periods are the groups and the first one is the
reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from ..base.arrays import Floats, Integers
from ..quality.copying import discoveries
from .mixed import Mixed

MIN_LABELS = 30  # of a group, before a correction is carried to it
_RATE = 0.05
_PERIODS = 5


@dataclass(frozen=True)
class Transported:
    """The error of the reference group's calibration in another group.

    `label` is the class whose share it is about, empty for numbers; `calibrated` is the mean that
    the calibration gives, `own` that of the group's own labels with its interval.
    """

    group: str
    reference: str
    label: str
    n_labels: int
    error: float
    low: float
    high: float
    p_value: float
    alarm: bool
    calibrated: float
    own: float
    own_low: float
    own_high: float


def transport(
    data: Mixed, *, reference: str | None = None, judge: int | None = None, confidence: float = 0.95
) -> tuple[Transported, ...]:
    """Return the error of the calibration in every group that has labels of its own.

    The reference is the group with most human labels, unless it is named.
    """
    if len(data.groups) < 2:
        return ()
    names = data.groups.tolist()
    sizes = [int((data.known & (data.group == number)).sum()) for number in range(len(names))]
    home = names.index(reference) if reference is not None else int(np.argmax(sizes))
    if sizes[home] < MIN_LABELS:
        return ()
    found: list[Transported] = []
    for label, y, f in _targets(data, judge):
        usable = ~np.isnan(y) & ~np.isnan(f)
        base = usable & (data.group == home)
        line = _line(f[base], y[base])
        for number, name in enumerate(names):
            here = usable & (data.group == number)
            if number == home or here.sum() < 3:
                continue
            error = y[here] - _at(line, f[here])
            more = _line_variance(line, f[base], y[base], data.cluster[base], float(f[here].mean()))
            mean, low, high, p_value = _interval(error, data.cluster[here], confidence, more)
            everywhere = (data.group == number) & ~np.isnan(f)
            own = _interval(y[here], data.cluster[here], confidence)
            found.append(
                Transported(
                    name,
                    names[home],
                    label,
                    int(here.sum()),
                    *(mean, low, high, p_value, False),
                    float(_at(line, f[everywhere]).mean()),
                    *own[:3],
                )
            )
    flagged = discoveries(np.array([one.p_value for one in found]), _RATE)
    return tuple(
        Transported(**{**vars(one), "alarm": bool(flag)})
        for one, flag in zip(found, flagged, strict=True)
    )


def periods(times: Sequence[float | None], count: int = _PERIODS) -> list[str | None]:
    """Return the period of every item, numbered from 1, with about as many items in each.

    >>> periods([1.0, 2.0, 3.0, 4.0, None], 2)
    ['period 1', 'period 1', 'period 2', 'period 2', None]
    """
    value = np.array([np.nan if time is None else time for time in times], dtype=float)
    known = ~np.isnan(value)
    inner = np.quantile(value[known], np.arange(1, count) / count) if known.any() else []
    code = np.searchsorted(inner, value, side="left")
    return [f"period {k + 1}" if ok else None for k, ok in zip(code, known, strict=True)]


def _targets(data: Mixed, judge: int | None) -> list[tuple[str, Floats, Floats]]:
    """Return what is compared: the values of numbers, or the share of every class."""
    if data.ordered:
        f = data.panel_value if judge is None else data.judge_value(judge)
        return [("", np.where(data.known, data.target_value, np.nan), f)]
    given = data.chosen(judge)
    out = []
    classes = data.classes.tolist()
    for code in range(1, 2) if len(classes) == 2 else range(len(classes)):
        out.append((classes[code], data.target_shares[:, code], given[:, code]))
    return out


def _line(f: Floats, y: Floats) -> tuple[float, float]:
    """Return intercept and slope; a constant judge has no slope."""
    spread = float(((f - f.mean()) ** 2).sum())
    slope = float(((f - f.mean()) * (y - y.mean())).sum()) / spread if spread > 0 else 0.0
    return float(y.mean()) - slope * float(f.mean()), slope


def _at(line: tuple[float, float], f: Floats) -> Floats:
    return line[0] + line[1] * f


def _line_variance(
    line: tuple[float, float], f: Floats, y: Floats, cluster: Integers, at: float
) -> float:
    """Return the variance of the line at a mean value of the judge."""
    residual, apart = y - _at(line, f), f - f.mean()
    spread = float((apart**2).sum())
    added = residual * (1 / len(f) + ((at - f.mean()) * apart / spread if spread > 0 else 0.0))
    sums = np.bincount(np.unique(cluster, return_inverse=True)[1], added)
    return float((sums**2).sum()) * len(sums) / max(len(sums) - 1, 1)


def _interval(
    value: Floats, cluster: Integers, confidence: float, more: float = 0.0
) -> tuple[float, float, float, float]:
    """Return a mean with its interval over clusters, and the p-value of zero.

    The p-value is that of the mean with `more` variance.
    """
    n, mean = len(value), float(value.mean())
    codes = np.unique(cluster, return_inverse=True)[1]
    sums = np.bincount(codes, value - mean)
    many = len(sums)
    error = float(np.sqrt((sums**2).sum() * many / max(many - 1, 1))) / n
    reach = float(stdtrit(max(many - 1, 1), (1 + confidence) / 2)) * error
    total = float(np.sqrt(error**2 + more))
    p_value = float(mean == 0)
    if total > 0:
        p_value = float(2 * stdtr(max(many - 1, 1), -abs(mean) / total))
    return mean, mean - reach, mean + reach, p_value
