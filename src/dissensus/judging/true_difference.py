"""The true difference of two groups: systems on the same prompts, or on different ones.

Where both groups have items in the same clusters, the method of `true_mean` is applied to the
differences within clusters, of people's values and of the judge's. Otherwise the two estimates are
independent, and their variances add up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from ..base.arrays import Floats, Integers
from .mixed import Mask, Mixed
from .true_mean import powered_mean
from .true_shares import MIN_LABELS


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
    y, f = np.where(data.known, y, np.nan), f
    pairs = _paired(y, f, data.cluster, sides) if data.clustered else None
    if pairs is not None and (~np.isnan(pairs[0])).sum() >= MIN_LABELS:
        dy, df = pairs
        labelled = ~np.isnan(dy)
        found = powered_mean(dy[labelled], df[labelled], df[~labelled], None, confidence)[:3]
        judged = float(df.mean())
        return Difference(one, other, label or "", judged, *found, int(labelled.sum()), True)
    estimates, variances, counts = [], [], []
    for side in sides:
        labelled = side & ~np.isnan(y) & ~np.isnan(f)
        rest = side & np.isnan(y) & ~np.isnan(f)
        counts.append(int(labelled.sum()))
        if counts[-1] < MIN_LABELS:
            continue
        estimate, low, _, _ = powered_mean(y[labelled], f[labelled], f[rest], None, confidence)
        freedom = max(counts[-1] - 2, 1)
        estimates.append(estimate)
        variances.append(((estimate - low) / stdtrit(freedom, (1 + confidence) / 2)) ** 2)
    judged = float(np.nanmean(f[sides[0]]) - np.nanmean(f[sides[1]]))
    nan = float("nan")
    if len(estimates) < 2:
        return Difference(one, other, label or "", judged, nan, nan, nan, min(counts), False)
    factor = float(stdtrit(max(min(counts) - 2, 1), (1 + confidence) / 2))
    reach = factor * float(np.sqrt(sum(variances)))
    middle = estimates[0] - estimates[1]
    return Difference(
        one, other, label or "", judged, middle, middle - reach, middle + reach, min(counts), False
    )


def _paired(
    y: Floats, f: Floats, cluster: Integers, sides: list[Mask]
) -> tuple[Floats, Floats] | None:
    """Return differences of people's and the judge's values in clusters that both groups have."""
    n_clusters = int(cluster.max(initial=-1)) + 1
    means = []
    for values in (y, f):
        for side in sides:
            used = side & ~np.isnan(values)
            count = np.bincount(cluster[used], minlength=n_clusters)
            with np.errstate(invalid="ignore"):
                total = np.bincount(cluster[used], values[used], minlength=n_clusters)
                means.append(total / count)
    both = ~np.isnan(means[2]) & ~np.isnan(means[3])
    if both.sum() < MIN_LABELS:
        return None
    return (means[0] - means[1])[both], (means[2] - means[3])[both]
