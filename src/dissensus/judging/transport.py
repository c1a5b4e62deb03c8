"""Whether a correction holds elsewhere: in other groups of items, and at later times.

A line g is fitted on the reference group, from the judge's value to people's. In any other group
with labels of its own, the mean of y - g(f) should be zero. The intervals are those of a t-test
over clusters. An alarm also counts that g was estimated, and the false discovery rate over groups
is controlled (Benjamini & Hochberg). Over time, periods are the groups and the first one is the
reference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy.special import stdtr

from ..base.arrays import Floats, Integers
from ..pages.sections import Table as SmallTable
from ..pages.wording import interval
from ..quality.copying import discoveries
from .clusters import ClusterMean, cluster_mean, cluster_variance
from .mixed import Mixed
from .question import Estimates, hundredths, points, shortened, too_few

_MIN_LABELS = 30  # of a group, before a correction is carried to it
_RATE = 0.05
_PERIODS = 5


@dataclass(frozen=True, kw_only=True)
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

    @property
    def sentence(self) -> str:
        """How far the calibration is off, and whether that is an alarm."""
        if self.n_labels < _MIN_LABELS and not self.alarm:
            few = too_few(self.n_labels, _MIN_LABELS)
            return f"Does the correction hold for {self.group}? {few}"
        side = "low" if self.error > 0 else "high"
        ends = (self.low, self.high)
        if self.low * self.high > 0:
            ends = (min(map(abs, ends)), max(map(abs, ends)))
        if self.label:
            size = f"{points(self.error)} points too {side} on {shortened(self.label)}"
            between = hundredths(*ends)
        else:
            size, between = f"{abs(self.error):.2g} too {side}", interval(*ends, ".2g")
        moved = f"calibrated on {self.reference}, the models are {size} ({between})"
        if self.alarm:
            return f"{self.group}: {moved}; its own human labels have to correct them."
        return f"{self.group}: {moved}, which is no alarm."


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Transport(Estimates[Transported]):
    """The error of the reference group's calibration in every other group with human labels.

    Attributes
    ----------
    n_labels
        Group → human labels.
    """

    name: ClassVar[str] = "transport"
    title: ClassVar[str] = "Does the correction hold elsewhere?"

    n_labels: Mapping[str, int] = field(default_factory=dict)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The clearest error in every group, and which groups have too few labels."""
        if not self.rows:
            return ()
        clearest: dict[str, Transported] = {}
        for transported in sorted(self.rows, key=lambda transported: transported.p_value):
            clearest.setdefault(transported.group, transported)
        return tuple(
            clearest[group].sentence
            if group in clearest
            else f"Does the correction hold for {group}? {too_few(n_labels, _MIN_LABELS)}"
            for group, n_labels in self.n_labels.items()
            if group != self.rows[0].reference
        )

    @property
    def small_table(self) -> SmallTable:
        """All errors with their intervals."""
        rows = [
            (
                transported.group,
                transported.label or "mean",
                "alarm" if transported.alarm else "",
                f"{transported.error:+.3f}",
                interval(transported.low, transported.high, "+.3f"),
                str(transported.n_labels),
            )
            for transported in self.rows
        ]
        heads = ["group", "of", "", "error", "95% interval", "human labels"]
        caption = "Human labels less the calibration of the reference group"
        return SmallTable(caption, heads, rows, 3)


def transport(
    data: Mixed, *, reference: str | None = None, judge: int | None = None, confidence: float = 0.95
) -> Transport:
    """Return the error of the calibration in every group that has labels of its own.

    The reference is the group with most human labels, unless it is named.
    """
    if len(data.groups) < 2:
        return Transport()
    names = data.groups.tolist()
    sizes = [int((data.known & (data.group == number)).sum()) for number in range(len(names))]
    n_labels = dict(zip(names, sizes, strict=True))
    home = names.index(reference) if reference is not None else int(np.argmax(sizes))
    if sizes[home] < _MIN_LABELS:
        return Transport(n_labels=n_labels)
    rows: list[Transported] = []
    for label, y, f in data.compared(judge, data.rate_labels):
        usable = ~np.isnan(y) & ~np.isnan(f)
        base = usable & (data.group == home)
        line = _line(f[base], y[base])
        for number, name in enumerate(names):
            inside = usable & (data.group == number)
            if number == home or inside.sum() < 3:
                continue
            cluster = data.cluster[inside]
            line_variance = _line_variance(
                line, f[base], y[base], cluster=data.cluster[base], at=float(f[inside].mean())
            )
            error = cluster_mean(y[inside] - _at(line, f[inside]), cluster)
            own = cluster_mean(y[inside], cluster)
            low, high = error.interval(confidence)
            own_low, own_high = own.interval(confidence)
            everywhere = (data.group == number) & ~np.isnan(f)
            rows.append(
                Transported(
                    group=name,
                    reference=names[home],
                    label=label or "",
                    n_labels=int(inside.sum()),
                    error=error.value,
                    low=low,
                    high=high,
                    p_value=_p_value(error, line_variance),
                    alarm=False,
                    calibrated=float(_at(line, f[everywhere]).mean()),
                    own=own.value,
                    own_low=own_low,
                    own_high=own_high,
                )
            )
    alarms = discoveries(np.array([row.p_value for row in rows]), _RATE)
    flagged = (replace(row, alarm=bool(alarm)) for row, alarm in zip(rows, alarms, strict=True))
    return Transport(rows=tuple(flagged), n_labels=n_labels)


def periods(times: Sequence[float | None], count: int = _PERIODS) -> list[str | None]:
    """Return the period of every item, numbered from 1, with about as many items in each.

    >>> periods([1.0, 2.0, 3.0, 4.0, None], 2)
    ['period 1', 'period 1', 'period 2', 'period 2', None]
    """
    value = np.array([np.nan if time is None else time for time in times], dtype=float)
    has_time = ~np.isnan(value)
    inner = np.quantile(value[has_time], np.arange(1, count) / count) if has_time.any() else []
    code = np.searchsorted(inner, value, side="left")
    return [f"period {k + 1}" if ok else None for k, ok in zip(code, has_time, strict=True)]


def _line(f: Floats, y: Floats) -> tuple[float, float]:
    """Return intercept and slope; a constant judge has no slope."""
    spread = float(((f - f.mean()) ** 2).sum())
    slope = float(((f - f.mean()) * (y - y.mean())).sum()) / spread if spread > 0 else 0.0
    return float(y.mean()) - slope * float(f.mean()), slope


def _at(line: tuple[float, float], f: Floats) -> Floats:
    return line[0] + line[1] * f


def _line_variance(
    line: tuple[float, float], f: Floats, y: Floats, *, cluster: Integers, at: float
) -> float:
    """Return the variance of the line at a mean value of the judge."""
    residual, deviation = y - _at(line, f), f - f.mean()
    spread = float((deviation**2).sum())
    added = residual * (1 / len(f) + ((at - f.mean()) * deviation / spread if spread > 0 else 0.0))
    return cluster_variance(added, cluster)[0]


def _p_value(mean: ClusterMean, extra_variance: float) -> float:
    """Return the p-value of a mean of zero, where something else adds to its variance."""
    error = math.sqrt(mean.error**2 + extra_variance)
    if not error:
        return float(mean.value == 0)
    return float(2 * stdtr(max(mean.freedom, 1), -abs(mean.value) / error))
