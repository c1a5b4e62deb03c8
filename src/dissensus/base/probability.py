"""Probabilities in arrays: normalized, pooled, calibrated, and counted as proportions.

Any method has rows of probabilities over classes to normalize, to take logarithms of without
underflow, and to take the most probable class from. Variational Bayes has Dirichlet distributions,
which are given by their counts.

**Pooling.** A linear opinion pool is the weighted mean of several models' probabilities. Weights
maximize the likelihood of held-out annotations, with a pseudo-count of one annotation per model.
This is a convex problem; EM would take hundreds of iterations, an interior-point method takes about
twelve. Models with little weight are dropped.

    Y. Kim, P. Carbonetto, M. Stephens, M. Anitescu. A fast algorithm for maximum likelihood
    estimation of mixture proportions using sequential quadratic programming. Journal of
    Computational and Graphical Statistics 29(2), 2020. doi:10.1080/10618600.2019.1689985

**Calibration.** Probabilities should be right as often as they claim to be. A model with a latent
true class treats the labels of an item as independent given its class. Real annotators share
errors, so its posterior is too sure, the more labels the more. Dividing the log posterior by a
temperature mends this and leaves the most probable class as it is:

    probabilities[i, k] ∝ posterior[i, k] ** (1 / temperature[i])
    temperature[i] = SCALE * (n_labels[i] / 5) ** EXPONENT

Both constants are measured on public sets with known truth (benchmarks/CALIBRATION.md). With
`ENOUGH_GOLD` known items, one further factor is fitted to them.

    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger. On calibration of modern neural networks.
    International Conference on Machine Learning, 2017.

**Proportions** have confidence intervals, and a test for the difference of two.

    E. B. Wilson. Probable inference, the law of succession, and statistical inference. Journal of
    the American Statistical Association 22(158), 1927. doi:10.1080/01621459.1927.10502953
    A. Agresti, B. Caffo. Simple and effective confidence intervals for proportions. The American
    Statistician 54(4), 2000. doi:10.1080/00031305.2000.10474560
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, ndtr, ndtri, psi

from .arrays import Array, Floats, Integers

TIE = 1e-12  # probabilities closer than this are equal

_SAFE = -700.0  # exp() of anything above this is not zero
_TINY = 1e-300
_LEVEL = 1e-10  # relative difference below which log probabilities are equal

# Pooling
_MAX_ITER = 100
_TOL = 1e-9  # of slopes, per annotation
_CENTRE = 0.1  # of the mean of weight * price, which is zero at the optimum, aimed at by a step
_INSIDE = 0.95  # of the way to a limit, at most

# Calibration
SCALE, EXPONENT = 4.0, 0.45
ENOUGH_GOLD = 50  # known items that a factor is fitted to
_LEAST, _MOST = 0.1, 20.0  # of the factor
_FLOOR = 1e-6  # least probability of a known label


def normalize(counts: Floats, axis: int = -1) -> Floats:
    """Divide by the sum along an axis; where that is zero, the result is uniform.

    >>> normalize(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    if counts.ndim == 2 and axis == -1:
        total = np.einsum("ik->i", counts)[:, None]  # several times faster than a sum
    else:
        total = counts.sum(axis=axis, keepdims=True)
    empty = total == 0
    if not empty.any():
        return counts / total
    return np.where(empty, 1 / counts.shape[axis], counts / np.where(empty, 1, total))


def safe_log(probabilities: Floats) -> Floats:
    """Return logarithms; zero counts as 1e-300."""
    return np.log(np.maximum(probabilities, _TINY))


def log_normalize(joint: Floats, allowed: Floats | float = 0.0) -> tuple[float, Floats]:
    """Return the log evidence of all items and their posteriors, which overwrite `joint`.

    Where nothing can underflow, the row maximum need not be subtracted first.
    """
    if isinstance(allowed, np.ndarray):
        joint += allowed
    shift = 0.0
    if joint.size and not joint.min() > _SAFE:
        highest = joint.max(axis=1, keepdims=True)
        joint -= highest
        shift = float(highest.sum())
    np.exp(joint, out=joint)
    total = np.einsum("ik->i", joint)
    joint *= (1 / total)[:, None]
    return float(np.log(total).sum()) + shift, joint


def harden(
    joint: Floats, allowed: Floats | float = 0.0, first: bool = False
) -> tuple[float, Floats]:
    """Return the log probability of the best classes and hard posteriors, which overwrite `joint`.

    Tied classes share the probability, or the first of them gets all of it.
    """
    if isinstance(allowed, np.ndarray):
        joint += allowed
    highest = joint.max(axis=1)
    level = highest - _LEVEL * np.maximum(1.0, np.abs(highest))
    leading = joint >= level[:, None]
    if first:
        leading &= leading.cumsum(axis=1) == 1
    n_tied = np.einsum("ik->i", leading.view(np.uint8), dtype=np.int64)
    np.divide(leading, n_tied[:, None], out=joint)
    return float(highest.sum()), joint


def most_probable(posterior: Floats) -> Integers:
    """Return the most probable class of every item; of tied classes, the first."""
    best = posterior.argmax(axis=1)
    top = posterior[np.arange(len(best)), best]
    return (posterior >= top[:, None] - TIE).argmax(axis=1)


def pick(probabilities: Floats, rng: np.random.Generator) -> Integers:
    """Return one class per row, as `rng.choice(n_classes, p=row)` would, row by row.

    >>> pick(np.array([[0.0, 1.0], [1.0, 0.0]]), np.random.default_rng(0)).tolist()
    [1, 0]
    """
    cumulative = probabilities.cumsum(axis=1)
    cumulative /= cumulative[:, -1:]
    level = rng.random(len(cumulative))
    label = np.zeros(len(cumulative), dtype=np.int64)
    for column in cumulative[:, :-1].T:
        label += column <= level
    return label


def expected_log(counts: Floats, axis: int = -1) -> Floats:
    """Return the expected logarithms under Dirichlets along an axis.

    >>> expected_log(np.array([1.0, 1.0])).tolist()
    [-1.0, -1.0]
    """
    return psi(counts) - psi(counts.sum(axis=axis, keepdims=True))


def log_beta(counts: Floats, axis: int = -1) -> Floats:
    """Return the logarithms of the normalizing constants."""
    return gammaln(counts).sum(axis=axis) - gammaln(counts.sum(axis=axis))


def negative_kl(counts: Floats, base: Floats, axis: int = -1) -> float:
    """Return minus the sum of KL divergences of Dirichlets from those with counts `base`.

    >>> negative_kl(np.array([2.0, 3.0]), np.array([2.0, 3.0]))
    0.0
    """
    base = np.broadcast_to(base, counts.shape)
    difference = np.vdot(counts - base, expected_log(counts, axis))
    return float(log_beta(counts, axis).sum() - log_beta(base, axis).sum() - difference)


def pool(log_probability: Floats, weight: Floats) -> Floats:
    """Return the log of the weighted mean: (annotation, class) from (model, annotation, class)."""
    with np.errstate(divide="ignore"):
        return logsumexp(log_probability + np.log(weight)[:, None, None], axis=0)


def pool_weights(log_probability: Floats, label: Integers, least: float = 0.0) -> Floats:
    """Return weights of models from their held-out predictions: (model, annotation, class).

    >>> good, bad = np.log([[0.9, 0.1]] * 50), np.log([[0.1, 0.9]] * 50)
    >>> pool_weights(np.stack([good, bad]), np.zeros(50, dtype=int)).round(1).tolist()
    [1.0, 0.0]

    Weights below `least` become zero, except the largest.
    """
    log_likelihood = log_probability[:, np.arange(len(label)), label]  # (model, annotation)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=0))
    members = np.ones(len(likelihood), dtype=bool)
    while True:
        weight = np.zeros(len(likelihood))
        weight[members] = mixture_weights(likelihood[members])
        low = members & (weight < least) & (weight < weight.max())
        if not low.any():
            return weight
        members[np.flatnonzero(low)[weight[low].argmin()]] = False


def mixture_weights(likelihood: Floats, pseudo_count: float = 1.0) -> Floats:
    """Return weights of models from the likelihoods of held-out labels: (model, annotation).

    They maximize Σ log(weight @ likelihood) + pseudo_count Σ log weight. With Σ weight subtracted
    for every annotation, they need not be held to add up to one: the optimum does (Kim et al.
    2020). It is found by an interior-point method; `price` is the gain that is lost because a
    weight cannot fall below zero.

    >>> mixture_weights(np.array([[0.9, 0.8], [0.1, 0.1]]), pseudo_count=0).round(3).tolist()
    [1.0, 0.0]
    """
    n_models, n_annotations = likelihood.shape
    weight, price = np.full(n_models, 1 / n_models), np.ones(n_models)
    if n_annotations == 0:
        return weight
    unit = 1 / (n_annotations + n_models * pseudo_count)
    for _ in range(_MAX_ITER):
        ratio = likelihood / (weight @ likelihood)  # (model, annotation)
        slope = 1 - unit * (ratio.sum(axis=1) + pseudo_count / weight)
        gap = float(weight @ price) / n_models
        if gap < _TOL and np.abs(slope - price).max() < _TOL:
            break
        target = _CENTRE * gap / weight
        curvature = unit * (ratio @ ratio.T + np.diag(pseudo_count / weight**2))
        step = np.linalg.solve(curvature + np.diag(price / weight), target - slope)
        change = target - price * (1 + step / weight)
        furthest = max((-step / weight).max(), (-change / price).max(), _INSIDE)
        weight, price = (weight + _INSIDE / furthest * step, price + _INSIDE / furthest * change)
    return normalize(weight)


def added_weight(likelihood: Floats) -> float:
    """Return the weight of one more model beside a pool: (2, annotation), the pool first.

    It is zero unless the likelihood of the labels rises.

    >>> pool, model = np.full(50, 0.6), np.where(np.arange(50) % 5, 0.9, 0.2)
    >>> round(added_weight(np.stack([pool, model])), 2), added_weight(np.stack([pool, pool - 0.1]))
    (0.71, 0.0)
    """
    weight = mixture_weights(likelihood)
    gain = np.log(weight @ likelihood) - np.log(likelihood[0])  # (annotation)
    return float(weight[1]) if gain.sum() > 0 else 0.0


def label_temperature(n_labels: Array, scale: float = SCALE) -> Floats:
    """Return the temperature of items with these numbers of labels.

    >>> label_temperature(np.array([1, 5, 20])).round(2).tolist()
    [1.94, 4.0, 7.46]
    """
    return scale * (np.maximum(n_labels, 1) / 5) ** EXPONENT


def temper(posterior: Floats, temperature: Floats) -> Floats:
    """Return a posterior, (item, class), with its log divided by temperatures, (item); 0 stays 0.

    >>> temper(np.array([[0.9, 0.1], [1.0, 0.0]]), np.array([2.0, 2.0])).round(2).tolist()
    [[0.75, 0.25], [1.0, 0.0]]
    """
    log = safe_log(posterior) / temperature[:, None]
    log[posterior == 0] = -np.inf
    return log_normalize(log)[1]


def fit_temperature(probabilities: Floats, truth: Integers) -> float:
    """Return the temperature under which known classes, (item), are most probable.

    Its logarithm has a normal prior with variance one half: few items move it little.
    """
    from scipy.optimize import minimize_scalar

    rows = np.arange(len(truth))

    def loss(log_temperature: float) -> float:
        tempered = temper(probabilities, np.full(len(truth), np.exp(log_temperature)))
        log_likelihood = np.log(np.maximum(tempered[rows, truth], _FLOOR)).sum()
        return log_temperature**2 - float(log_likelihood)

    bounds = (float(np.log(_LEAST)), float(np.log(_MOST)))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


class Proportion(NamedTuple):
    """Proportions with Wilson's interval; NaN where nothing was counted."""

    among: Floats  # how many were counted
    value: Floats
    low: Floats
    high: Floats


def proportion(right: Floats, count: Floats, confidence: float = 0.95) -> Proportion:
    """Return proportions with a confidence interval.

    >>> [round(float(value[0]), 3) for value in proportion(np.array([9.0]), np.array([10.0]))]
    [10.0, 0.9, 0.596, 0.982]
    """
    z = float(ndtri((1 + confidence) / 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        value = right / count
        center = (value + z**2 / (2 * count)) / (1 + z**2 / count)
        reach = z * np.sqrt(value * (1 - value) / count + z**2 / (4 * count**2))
        reach /= 1 + z**2 / count
    # The bounds of 0 and 1 are exact but for rounding.
    low = np.where(value == 0, 0.0, np.maximum(center - reach, 0.0))
    high = np.where(value == 1, 1.0, np.minimum(center + reach, 1.0))
    return Proportion(count, value, low, high)


def difference_p_value(right: Floats, count: Floats) -> Floats:
    """Return p-values for the difference of two proportions: (…), from (2, …).

    One success and one failure are added to each (Agresti & Caffo). NaN where a count is zero.

    >>> right, count = np.array([[45.0, 9.0], [20.0, 8.0]]), np.array([[50.0, 10.0]] * 2)
    >>> difference_p_value(right, count).round(3)
    array([0.   , 0.613])
    """
    share = (right + 1) / (count + 2)
    error = np.sqrt((share * (1 - share) / (count + 2)).sum(axis=0))
    p_value = 2 * ndtr(-np.abs(share[0] - share[1]) / error)
    return np.where((count > 0).all(axis=0), p_value, np.nan)
