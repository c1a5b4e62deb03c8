"""The true mean of a number, from a judge's numbers on all items and people's on some.

Prediction-powered inference: n items have a human value y, all have the judge's value f, N have
only that.

    b = clip(cov_n(y, f) / var_{n+N}(f) · N / (n + N), 0, 1)
    theta = mean_n(y) + b (mean_N(f) - mean_n(f))
    v = var_n(y - b f) (n-1)/(n-2) / n + b² var_N(f) / N,    theta ± t_{n-2} sqrt(v)

With clusters, v is the sum of squares of what every cluster adds to theta, with t for the labelled
clusters less one. A constant judge, or no further item, leaves the mean of people's values.

For a bounded scale in groups of items (ratings, many at its end) t intervals fail. There the judge
splits a group at the median of its scores, and in each stratum the shares of values are drawn from
a Dirichlet distribution with two more labels like those of all groups; the mean is Σ value × share.

    A. N. Angelopoulos, J. C. Duchi, T. Zrnic. PPI++: efficient prediction-powered inference.
    arXiv:2311.01453, 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from ..base.arrays import Floats, Integers
from .clusters import cluster_mean, correlation, design_effect, known_mean, quantiles
from .mixed import Mixed
from .true_shares import MIN_LABELS, UNKNOWN, Rate, Sampled, ends

MOST_VALUES = 11  # of a bounded scale

_DRAWS = 2000
_PRIOR = 2.0  # labels of all groups that every stratum starts with


@dataclass(frozen=True, kw_only=True)
class Mean(Rate):
    """A mean.

    `correlation` is that of judge and people, `equivalent` the number of human labels alone that
    would give as narrow an interval, `slope` the b of the formula.
    """

    correlation: float
    equivalent: float
    slope: float

    @property
    def judge_mean(self) -> float:
        """As the judge has it on all items."""
        return self.judged


def true_mean(
    data: Mixed,
    *,
    sampled: Sampled = "random",
    judge: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[Mean, ...]:
    """Return the mean in every group; the judge is one, or the mean of the panel."""
    judged = data.judge_value(judge)
    bounded = len(data.groups) > 0 and not data.numeric and data.n_classes <= MOST_VALUES
    pooled = data.target_shares[data.known].mean(axis=0) if bounded and data.known.any() else None
    out = []
    for group, items in data.per_group():
        inside = items & ~np.isnan(judged)
        labelled = inside & ~np.isnan(data.target_value)
        unlabelled = inside & ~labelled
        y, f, cluster = data.target_value[labelled], judged[labelled], data.cluster[labelled]
        corrected, people, slope, method, problem = UNKNOWN, UNKNOWN, math.nan, "ppi++", ""
        if sampled == "random" and len(y) > 2:
            mean = cluster_mean(y, cluster)
            people = (mean.value, *mean.interval(confidence))
        if len(y) < MIN_LABELS:
            problem = "few"
        elif sampled == "by-label" or (sampled == "by-judge" and pooled is None):
            problem = "sampled"
        elif pooled is not None:
            method = "strata"
            corrected = stratified_mean(
                data.value,
                data.target_shares[labelled],
                f,
                judged[inside],
                pooled,
                cluster=cluster if data.clustered else None,
                confidence=confidence,
                seed=seed,
            )
        else:
            clusters = (cluster, data.cluster[unlabelled]) if data.clustered else None
            powered = powered_mean(y, f, judged[unlabelled], clusters, confidence)
            corrected, slope = powered[:3], powered[3]
        r = correlation(y, f, 0.0)
        saved = 1 - r**2 * unlabelled.sum() / max(inside.sum(), 1)
        out.append(
            Mean(
                group=group,
                judged=known_mean(judged[inside]),
                **ends(corrected, people),
                n_labels=len(y),
                n_items=int(inside.sum()),
                correlation=r,
                equivalent=float(len(y) / saved) if saved > 0 else math.nan,
                slope=slope,
                method=method,
                problem=problem,
            )
        )
    return tuple(out)


def powered_mean(
    y: Floats,
    f: Floats,
    unlabelled: Floats,
    clusters: tuple[Integers, Integers] | None = None,
    confidence: float = 0.95,
    *,
    slope: float | None = None,
    exact: bool = True,
) -> tuple[float, float, float, float]:
    """Return estimate, interval and slope of a mean.

    Parameters
    ----------
    y, f
        Values of people and of the judge on labelled items.
    unlabelled
        Values of the judge on all others.
    clusters
        Clusters of labelled and of other items.
    slope
        The b of the formula, if it is given.
    exact
        Student's t and variances with their degrees of freedom; otherwise the normal distribution
        and plain variances, as published.
    """
    n, n_rest, level = len(y), len(unlabelled), (1 + confidence) / 2
    if slope is None:
        slope = 0.0
        spread = float(np.var(np.concatenate([f, unlabelled]), ddof=1)) if n + n_rest > 1 else 0
        if n_rest and n > 2 and spread > 0:
            slope = float(np.cov(y, f)[0, 1]) / spread * n_rest / (n + n_rest)
            slope = min(max(slope, 0.0), 1.0)
    corrected = slope != 0 and n_rest > 0
    estimate = float(y.mean() + (slope * (unlabelled.mean() - f.mean()) if corrected else 0.0))
    residual = y - slope * f if corrected else y
    residual = residual - residual.mean()
    unlabelled_residual = slope * (unlabelled - unlabelled.mean()) if corrected else np.zeros(0)
    if clusters is not None:
        codes = np.unique(np.concatenate(clusters), return_inverse=True)[1]
        added = np.concatenate([residual / n, unlabelled_residual / max(n_rest, 1)])
        sums = np.bincount(codes[: len(added)], added)
        n_clusters = len(np.unique(clusters[0]))
        many = max(len(sums), 2)
        variance, freedom = float((sums**2).sum()) * many / (many - 1), n_clusters - 1
    else:
        freedom = n - 2 if corrected else n - 1
        lost = (freedom, n_rest - 1) if exact else (n, n_rest)
        variance = float((residual**2).sum()) / max(lost[0], 1) / n
        if corrected:
            variance += float((unlabelled_residual**2).sum()) / max(lost[1], 1) / n_rest
    factor = float(stdtrit(max(freedom, 1), level) if exact else ndtri(level))
    reach = factor * float(np.sqrt(variance))
    return estimate, estimate - reach, estimate + reach, slope


def stratified_mean(
    value: Floats,
    shares: Floats,
    f: Floats,
    everywhere: Floats,
    pooled: Floats,
    *,
    cluster: Integers | None = None,
    confidence: float = 0.95,
    draws: int = _DRAWS,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Return estimate and interval of the mean of a bounded scale in one group.

    Parameters
    ----------
    value
        The value of every class.
    shares
        Labelled items of the group, shares of people: (item, class).
    f, everywhere
        The judge's score on labelled and on all items of the group.
    pooled
        Shares of classes on the labelled items of all groups.
    cluster
        Clusters of labelled items; where they are alike, counts are divided by the design effect.
    """
    rng = np.random.default_rng(seed)
    middle = float(np.median(everywhere))
    weight = np.array([(everywhere >= middle).sum(), (everywhere < middle).sum()], dtype=float)
    overall = float(shares.mean(axis=0) @ value)
    counts = [shares[f >= middle].sum(axis=0), shares[f < middle].sum(axis=0)]
    means = [float(count @ value / count.sum()) if count.sum() else overall for count in counts]
    center = np.where(f >= middle, *means)
    residual = shares @ value - center
    effect = 1.0 if cluster is None else design_effect(residual, cluster, confidence)
    effect *= _averaged(value, shares, residual=residual, center=center, pooled=pooled)
    drawn = [_dirichlet(rng, count / effect + _PRIOR * pooled, draws) @ value for count in counts]
    mixture = _dirichlet(rng, weight, draws)
    values = (mixture * np.stack(drawn, axis=1)).sum(axis=1)
    return float(weight @ means / weight.sum()), *quantiles(values, confidence)


def _averaged(
    value: Floats, shares: Floats, *, residual: Floats, center: Floats, pooled: Floats
) -> float:
    """Return the variance of items' means relative to that of single labels, at most 1.

    Where several people labelled an item, its mean varies less than one label. The prior counts
    for both.
    """
    prior = _PRIOR * float(pooled @ (value - pooled @ value) ** 2)
    labels = float((shares * (value - center[:, None]) ** 2).sum()) + prior
    return min((float((residual**2).sum()) + prior) / labels, 1.0) if labels > 0 else 1.0


def _dirichlet(rng: np.random.Generator, counts: Floats, draws: int) -> Floats:
    """Return draws of shares; what has no count has no share."""
    gamma = np.zeros((draws, len(counts)))
    positive = counts > 0
    gamma[:, positive] = rng.standard_gamma(counts[positive], size=(draws, int(positive.sum())))
    return gamma / np.maximum(gamma.sum(axis=1, keepdims=True), 1e-300)
