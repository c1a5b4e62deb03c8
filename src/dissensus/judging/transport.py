"""Groups of items compared: whether a correction carries over, and how groups truly differ.

A line g is fitted on the reference group, from the judge's value to people's. In any other group
with labels of its own, the mean of y - g(f) should be zero. The intervals are those of a t-test
over clusters. An alarm also counts that g was estimated, and the false discovery rate over groups
is controlled (Benjamini & Hochberg). Over time, periods are the groups and the first one is the
reference.

The true difference of two groups, systems on the same prompts or on different ones: where both have
items in the same clusters, the method of `true_mean` is applied to the differences within clusters,
of people's values and of the judge's. Otherwise the two estimates are independent, and their
variances add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from ..base.arrays import Floats, Integers
from ..quality.copying import discoveries
from .mixed import Mask, Mixed
from .true_mean import powered_mean
from .true_shares import MIN_LABELS as _MIN_PAIRED_LABELS

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
    results: list[Transported] = []
    for label, y, f in _targets(data, judge):
        usable = ~np.isnan(y) & ~np.isnan(f)
        base = usable & (data.group == home)
        line = _line(f[base], y[base])
        for number, name in enumerate(names):
            inside = usable & (data.group == number)
            if number == home or inside.sum() < 3:
                continue
            error = y[inside] - _at(line, f[inside])
            line_variance = _line_variance(
                line, f[base], y[base], cluster=data.cluster[base], at=float(f[inside].mean())
            )
            mean, low, high, p_value = _interval(
                error, data.cluster[inside], confidence, line_variance
            )
            everywhere = (data.group == number) & ~np.isnan(f)
            own, own_low, own_high, _ = _interval(y[inside], data.cluster[inside], confidence)
            results.append(
                Transported(
                    group=name,
                    reference=names[home],
                    label=label,
                    n_labels=int(inside.sum()),
                    error=mean,
                    low=low,
                    high=high,
                    p_value=p_value,
                    alarm=False,
                    calibrated=float(_at(line, f[everywhere]).mean()),
                    own=own,
                    own_low=own_low,
                    own_high=own_high,
                )
            )
    flagged = discoveries(np.array([result.p_value for result in results]), _RATE)
    return tuple(
        Transported(**{**vars(result), "alarm": bool(flag)})
        for result, flag in zip(results, flagged, strict=True)
    )


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


def _targets(data: Mixed, judge: int | None) -> list[tuple[str, Floats, Floats]]:
    """Return what is compared: the values of numbers, or the share of every class."""
    if data.ordered:
        f = data.panel_value if judge is None else data.judge_value(judge)
        return [("", np.where(data.known, data.target_value, np.nan), f)]
    predicted = data.chosen(judge)
    out = []
    classes = data.classes.tolist()
    for code in range(1, 2) if len(classes) == 2 else range(len(classes)):
        out.append((classes[code], data.target_shares[:, code], predicted[:, code]))
    return out


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
    sums = np.bincount(np.unique(cluster, return_inverse=True)[1], added)
    return float((sums**2).sum()) * len(sums) / max(len(sums) - 1, 1)


def _interval(
    value: Floats, cluster: Integers, confidence: float, extra_variance: float = 0.0
) -> tuple[float, float, float, float]:
    """Return a mean with its interval over clusters, and the p-value of zero.

    The p-value is that of the mean with `extra_variance`.
    """
    n, mean = len(value), float(value.mean())
    codes = np.unique(cluster, return_inverse=True)[1]
    sums = np.bincount(codes, value - mean)
    many = len(sums)
    error = float(np.sqrt((sums**2).sum() * many / max(many - 1, 1))) / n
    reach = float(stdtrit(max(many - 1, 1), (1 + confidence) / 2)) * error
    total = float(np.sqrt(error**2 + extra_variance))
    p_value = float(mean == 0)
    if total > 0:
        p_value = float(2 * stdtr(max(many - 1, 1), -abs(mean) / total))
    return mean, mean - reach, mean + reach, p_value


@dataclass(frozen=True)
class Difference:
    """The mean of one group minus that of another.

    `n_labels` are pairs with human labels on both sides (or the fewer labels of the two groups),
    `paired` whether differences within clusters were used, `label` the class whose share it is.
    """

    one: str
    other: str
    label: str
    judge_difference: float
    estimate: float
    low: float
    high: float
    n_labels: int
    paired: bool


def true_difference(
    data: Mixed,
    one: str,
    other: str,
    *,
    label: str | None = None,
    judge: int | None = None,
    confidence: float = 0.95,
) -> Difference:
    """Return the difference of two groups: of means, or of the shares of a class."""
    if label is None:
        y = data.target_value
        f = data.panel_value if judge is None else data.judge_value(judge)
    else:
        code = data.classes.tolist().index(label)
        y = data.target_shares[:, code]
        f = data.chosen(judge)[:, code]
    names = data.groups.tolist()
    sides = [data.group == names.index(name) for name in (one, other)]
    y = np.where(data.known, y, np.nan)
    pairs = _paired(y, f, data.cluster, sides) if data.clustered else None
    if pairs is not None and (~np.isnan(pairs[0])).sum() >= _MIN_PAIRED_LABELS:
        dy, df = pairs
        labelled = ~np.isnan(dy)
        estimate, low, high, _ = powered_mean(
            dy[labelled], df[labelled], df[~labelled], confidence=confidence
        )
        return Difference(
            one=one,
            other=other,
            label=label or "",
            judge_difference=float(df.mean()),
            estimate=estimate,
            low=low,
            high=high,
            n_labels=int(labelled.sum()),
            paired=True,
        )
    estimates, variances, counts = [], [], []
    for side in sides:
        labelled = side & ~np.isnan(y) & ~np.isnan(f)
        unlabelled = side & np.isnan(y) & ~np.isnan(f)
        counts.append(int(labelled.sum()))
        if counts[-1] < _MIN_PAIRED_LABELS:
            continue
        estimate, low, _, _ = powered_mean(
            y[labelled], f[labelled], f[unlabelled], confidence=confidence
        )
        freedom = max(counts[-1] - 2, 1)
        estimates.append(estimate)
        variances.append(((estimate - low) / stdtrit(freedom, (1 + confidence) / 2)) ** 2)
    middle = reach = float("nan")
    if len(estimates) == 2:
        factor = float(stdtrit(max(min(counts) - 2, 1), (1 + confidence) / 2))
        reach = factor * float(np.sqrt(sum(variances)))
        middle = estimates[0] - estimates[1]
    return Difference(
        one=one,
        other=other,
        label=label or "",
        judge_difference=float(np.nanmean(f[sides[0]]) - np.nanmean(f[sides[1]])),
        estimate=middle,
        low=middle - reach,
        high=middle + reach,
        n_labels=min(counts),
        paired=False,
    )


def _paired(
    y: Floats, f: Floats, cluster: Integers, sides: list[Mask]
) -> tuple[Floats, Floats] | None:
    """Return differences of people's and the judge's values in clusters that both groups have."""
    n_clusters = int(cluster.max(initial=-1)) + 1
    means = []
    for values in (y, f):
        for side in sides:
            present = side & ~np.isnan(values)
            count = np.bincount(cluster[present], minlength=n_clusters)
            with np.errstate(invalid="ignore"):
                total = np.bincount(cluster[present], values[present], minlength=n_clusters)
                means.append(total / count)
    shared = ~np.isnan(means[2]) & ~np.isnan(means[3])
    if shared.sum() < _MIN_PAIRED_LABELS:
        return None
    return (means[0] - means[1])[shared], (means[2] - means[3])[shared]
