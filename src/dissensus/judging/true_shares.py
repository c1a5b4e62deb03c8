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

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import ndtri

from ..base.arrays import Floats, Integers
from ..base.probability import proportion
from .clusters import design_effect, known_mean, quantiles
from .mixed import Mask, Mixed

Sampled = Literal["random", "by-judge", "by-label"]
SAMPLED: tuple[Sampled, ...] = get_args(Sampled)
MIN_LABELS = 10  # human labels, below which no share is corrected
UNKNOWN = (math.nan, math.nan, math.nan)

_DRAWS = 2000


@dataclass(frozen=True, kw_only=True)
class Rate:
    """What is true of a group of items, corrected by human labels.

    Attributes
    ----------
    label, group
        The class whose share it is, and the group of items; empty for a mean, and for all items.
    judged
        As the judge has it on all items.
    estimate, low, high
        Corrected by human labels, with a confidence interval; NaN if that cannot be computed.
    people, people_low, people_high
        From human labels alone; NaN where they were not chosen at random.
    n_labels, n_items
        Items that people labelled, and all items of the judge.
    method
        `strata`, `rogan-gladen` or `ppi++`.
    problem
        Why there is no estimate.
    """

    label: str = ""
    group: str
    judged: float
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


@dataclass(frozen=True, kw_only=True)
class Share(Rate):
    """The share of a class."""

    @property
    def judge_share(self) -> float:
        """As the judge has it on all items."""
        return self.judged


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
    answered = ~np.isnan(judged).any(axis=1)
    out = []
    for group, items in data.per_group():
        inside = items & answered
        labelled = inside & data.known
        cluster, clusters = data.cluster[labelled], data.cluster[inside]
        for number, label in enumerate(data.classes.tolist()):
            y, says = data.target_shares[labelled, number], judged[labelled, number] > 0
            everywhere = judged[inside, number] > 0
            corrected: tuple[float, float, float] | None = UNKNOWN
            if len(y) >= MIN_LABELS and sampled == "by-label":
                corrected = rogan_gladen(everywhere, y, says, confidence)
            elif len(y) >= MIN_LABELS:
                corrected = stratified_share(
                    y,
                    says,
                    everywhere,
                    cluster,
                    clusters,
                    confidence=confidence,
                    draws=draws,
                    seed=seed,
                )
            random = sampled == "random" and len(y) > 0
            people = _people(y, cluster, confidence) if random else UNKNOWN
            out.append(
                Share(
                    label=label,
                    group=group,
                    judged=known_mean(judged[inside, number]),
                    **ends(corrected or UNKNOWN, people),
                    n_labels=len(y),
                    n_items=len(everywhere),
                    method="rogan-gladen" if sampled == "by-label" else "strata",
                    problem="few" if len(y) < MIN_LABELS else "" if corrected else "judge",
                )
            )
    return tuple(out)


def ends(
    corrected: tuple[float, float, float], people: tuple[float, float, float]
) -> dict[str, Any]:
    """Return the estimate with its interval, and that of people alone, as fields of a rate."""
    names = ("estimate", "low", "high", "people", "people_low", "people_high")
    return dict(zip(names, (*corrected, *people), strict=True))


def _people(y: Floats, cluster: Integers, confidence: float) -> tuple[float, float, float]:
    """Return the share of labels alone, with Wilson's interval."""
    effect = design_effect(y - y.mean(), cluster)
    wilson = proportion(np.array([y.sum() / effect]), np.array([len(y) / effect]), confidence)
    return float(y.mean()), float(wilson.low[0]), float(wilson.high[0])


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
    return float(shares @ rate), *quantiles(values, confidence)


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
