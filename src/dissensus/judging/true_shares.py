"""The true share of a class, from what a judge answered on all items and people on some.

Which estimator is right depends only on how the items that people labelled were chosen.

At random, or by what the judge answered: post-stratification. For class c, stratum k is where the
judge chose c (of a panel: most judges, perhaps tied), or another class:

    w ~ Dirichlet(counts of strata over all items)
    p_k ~ Beta(s_k + 1/2, n_k - s_k + 1/2)      s_k: labelled items of stratum k with label c

Quantiles of draws of Σ_k w_k p_k are the interval; the estimate is Σ_k w_k s_k / n_k, with the
overall share for n_k = 0. Where several people labelled an item, their shares are its label. Items
of one cluster count as fewer: counts are divided by the design effect, and by what Student's t adds
to a normal interval for so few clusters.

By true class: Rogan & Gladen's estimator with the interval of Lang & Reiczigel. q is the judge's
share of c on all items, Se and Sp its sensitivity and specificity on labelled ones.

    W. J. Rogan, B. Gladen. Estimating prevalence from the results of a screening test. American
    Journal of Epidemiology 107(1), 1978.
    Z. Lang, J. Reiczigel. Confidence limits for prevalence of disease adjusted for estimated
    sensitivity and specificity. Preventive Veterinary Medicine 113(1), 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtri, stdtrit

from ..base.arrays import Floats, Integers
from ..base.probability import proportion
from .mixed import Mask, Mixed

Sampled = Literal["random", "by-judge", "by-label"]
SAMPLED: tuple[Sampled, ...] = get_args(Sampled)
MIN_LABELS = 10  # human labels, below which no share is corrected
ENOUGH = 50  # human labels that do

_DRAWS = 2000


@dataclass(frozen=True)
class Share:
    """The share of a class, corrected by human labels.

    Attributes
    ----------
    label, group
        The class, and the group of items it is about; empty for all.
    judge_share
        As the judge has it on all items.
    estimate, low, high
        Corrected by human labels, with a confidence interval; NaN if that cannot be computed.
    people, people_low, people_high
        From human labels alone; NaN where they were not chosen at random.
    n_labels, n_items
        Items that people labelled, and all items of the judge.
    method
        `strata` or `rogan-gladen`.
    problem
        Why there is no estimate.
    """

    label: str
    group: str
    judge_share: float
    estimate: float
    low: float
    high: float
    people: float
    people_low: float
    people_high: float
    n_labels: int
    n_items: int
    method: str
    problem: str = ""


def true_shares(
    data: Mixed,
    *,
    sampled: Sampled = "random",
    judge: int | None = None,
    confidence: float = 0.95,
    draws: int = _DRAWS,
    seed: int = 0,
) -> tuple[Share, ...]:
    """Return the share of every class in every group; the judge is one, or the panel's majority."""
    judged = data.chosen(judge)
    out = []
    for group, items in data.per_group():
        inside = items & ~np.isnan(judged).any(axis=1)
        for number, name in enumerate(data.classes.tolist()):
            out.append(
                _share(
                    data,
                    number,
                    label=name,
                    group=group,
                    judged=judged[:, number],
                    inside=inside,
                    sampled=sampled,
                    confidence=confidence,
                    draws=draws,
                    seed=seed,
                )
            )
    return tuple(out)


def _share(
    data: Mixed,
    number: int,
    *,
    label: str,
    group: str,
    judged: Floats,
    inside: Mask,
    sampled: Sampled,
    confidence: float,
    draws: int,
    seed: int,
) -> Share:
    labelled = inside & data.known
    y, says = data.target_shares[labelled][:, number], judged[labelled] > 0
    everywhere = judged[inside] > 0
    n, nan, problem = len(y), float("nan"), ""
    estimate = low = high = people = people_low = people_high = nan
    if sampled == "random" and n:
        effect = design_effect(y - y.mean(), data.cluster[labelled])
        wilson = proportion(np.array([y.sum() / effect]), np.array([n / effect]), confidence)
        people, people_low, people_high = y.mean(), wilson.low[0], wilson.high[0]
    if n < MIN_LABELS:
        problem = "few"
    elif sampled == "by-label":
        interval = rogan_gladen(everywhere, y, says, confidence)
        if interval is None:
            problem = "judge"
        else:
            estimate, low, high = interval
    else:
        estimate, low, high = stratified_share(
            y,
            says,
            everywhere,
            data.cluster[labelled],
            data.cluster[inside],
            confidence=confidence,
            draws=draws,
            seed=seed,
        )
    return Share(
        label=label,
        group=group,
        judge_share=float(judged[inside].mean()) if inside.any() else nan,
        estimate=estimate,
        low=low,
        high=high,
        people=float(people),
        people_low=float(people_low),
        people_high=float(people_high),
        n_labels=n,
        n_items=int(inside.sum()),
        method="rogan-gladen" if sampled == "by-label" else "strata",
        problem=problem,
    )


def stratified_share(
    y: Floats,
    says: Mask,
    everywhere: Mask,
    cluster: Integers | None = None,
    clusters: Integers | None = None,
    *,
    confidence: float = 0.95,
    draws: int = _DRAWS,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Return estimate and interval of a share from two strata.

    Parameters
    ----------
    y
        Labelled items: 1 if the label is the class, or the share of people who chose it.
    says
        Labelled items: whether the judge chose the class.
    everywhere
        All items: whether the judge chose the class.
    cluster, clusters
        Clusters of labelled and of all items.
    """
    rng = np.random.default_rng(seed)
    size = np.array([says.sum(), (~says).sum()], dtype=float)
    right = np.array([y[says].sum(), y[~says].sum()])
    weight = np.array([everywhere.sum(), (~everywhere).sum()], dtype=float)
    rate = np.divide(right, size, out=np.full(2, y.mean()), where=size > 0)
    shares = weight / weight.sum()
    residual = y - np.where(says, rate[0], rate[1])
    effect = 1.0 if cluster is None else design_effect(residual, cluster, confidence)
    spread = everywhere - everywhere.mean()
    wide = 1.0 if clusters is None else design_effect(spread, clusters)
    drawn = rng.beta(
        right / effect + 0.5, np.maximum(size - right, 0) / effect + 0.5, size=(draws, 2)
    )
    # A stratum without items has no weight in any draw.
    mixture = (
        rng.beta(weight[0] / wide, weight[1] / wide, size=draws) if weight.all() else shares[0]
    )
    values = mixture * drawn[:, 0] + (1 - mixture) * drawn[:, 1]
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(shares @ rate), float(low), float(high)


def design_effect(residual: Floats, cluster: Integers, confidence: float | None = None) -> float:
    """Return by how much the variance of a mean grows because items of a cluster are alike.

    At least 1. With a confidence level, Student's t for so few clusters is part of it. Items that
    are clusters of their own have no effect.
    """
    n = len(residual)
    names, code = np.unique(cluster, return_inverse=True)
    n_clusters, total = len(names), float((residual**2).sum())
    if n_clusters == n or n_clusters < 2 or total == 0:
        return 1.0
    sums = np.bincount(code, residual)
    effect = max(
        1.0, float((sums**2).sum()) * n_clusters / (n_clusters - 1) / (total * n / (n - 1))
    )
    if confidence is not None:
        level = (1 + confidence) / 2
        effect *= float(stdtrit(n_clusters - 1, level) / ndtri(level)) ** 2
    return effect


def rogan_gladen(
    everywhere: Mask, y: Floats, says: Mask, confidence: float = 0.95
) -> tuple[float, float, float] | None:
    """Return estimate and interval of a share, for labelled items chosen by their true class.

    `None` if the judge is no better than random, or nothing between 0 and 1 fits.
    """
    z, n_items = float(ndtri((1 + confidence) / 2)), len(everywhere)
    n_1, n_0 = float(y.sum()), float((1 - y).sum())
    if not n_1 or not n_0:
        return None
    sensitivity = (float(y[says].sum()) + 1) / (n_1 + 2)
    specificity = (float((1 - y)[~says].sum()) + 1) / (n_0 + 2)
    youden = sensitivity + specificity - 1
    if youden <= 0:
        return None
    q = (everywhere.sum() + z**2 / 2) / (n_items + z**2)
    share = (q + specificity - 1) / youden
    a = sensitivity * (1 - sensitivity) / (n_1 + 2)
    b = specificity * (1 - specificity) / (n_0 + 2)
    center = share + 2 * z**2 * (share * a - (1 - share) * b)
    reach = (
        z * np.sqrt(q * (1 - q) / (n_items + z**2) + share**2 * a + (1 - share) ** 2 * b) / youden
    )
    low, high = float(center - reach), float(center + reach)
    if high < 0 or low > 1:
        return None
    low, high = max(low, 0.0), min(high, 1.0)
    return min(max(float(share), low), high), low, high
