"""Normal errors: every annotator has a bias and a precision, and items have a common spread.

The value of an item is drawn from a normal distribution around `mean`. Annotator a answers value +
bias[a] + error, the error normal with precision[a]. Biases are normal around 0, precisions have a
Gamma prior; without it, the likelihood has no bound: a variance goes to zero while the values copy
one annotator. EM: values under the parameters, then biases, precisions, mean and spread; the
penalised likelihood never falls.

With `freedom`, errors follow Student's t, so that a wild answer counts little: every answer has a
weight of its own, and the objective is the lower bound of the likelihood that comes with it.

What all values and all biases share is only told apart by the biases' prior, and EM finds it
slowly. It moves all values together by a little; a smaller `tol` takes longer to find it.

    V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni, L. Moy. Learning from
    crowds. Journal of Machine Learning Research 11, 2010. (The model without biases and priors.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from annotated_types import Ge
from scipy.special import gammaln

from ..._fixed_point import rounds, still
from ..._relation import Floats
from ...params import Count, NonNegative, Positive
from ._base import Estimator, Fit
from .result import Estimation

__all__ = ["Gaussian"]


class Crowd(NamedTuple):
    """What is learned."""

    mean: float  # of all values
    spread: float  # variance of the values
    bias: Floats  # (annotator)
    precision: Floats  # (annotator)


class Belief(NamedTuple):
    """What is believed about the values, and what each answer counts."""

    value: Floats  # (item)
    variance: Floats  # (item)
    error: Floats  # (answer): expected square of what it misses by
    weight: Floats  # (answer): 1, unless errors follow Student's t


class Reached(NamedTuple):
    """Where a round has come."""

    crowd: Crowd
    posterior: Belief | None = None  # before the first round there is none
    objective: float = np.nan


@dataclass(frozen=True, kw_only=True)
class Gaussian(Estimator):
    """Values, biases and precisions under normal errors, fitted with EM.

    Parameters
    ----------
    max_iter
        Rounds at most.
    tol
        Stop when a round changes the objective by less than this share of it.
    shape
        Shape of the precisions' prior; more of it holds them together.
    rate
        Rate of the precisions' prior: the variance of `all` answers, or of those `within` items;
        the former takes what items differ by for noise, too much where they differ a lot.
    firmness
        Precision of the biases' prior, in units of the answers; more of it, smaller biases.
    freedom
        Degrees of freedom of Student's t for errors; `None` for normal ones.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 4, 5, 5.1, 7])
    >>> Gaussian().fit(annotations).bias.round(1).tolist()
    [-0.7, -0.6, 1.3]
    """

    max_iter: Count = 500
    tol: NonNegative = 1e-8
    shape: Annotated[float, Ge(1)] = 2.0
    rate: Literal["all", "within"] = "all"
    firmness: Positive = 0.01
    freedom: Positive | None = None

    def infer(self, fit: Fit) -> Estimation:
        def advance(last: Reached) -> Reached:
            crowd, weight = last.crowd, np.ones(len(fit.annotations))
            if last.posterior is not None:
                crowd, weight = self._learn(fit, last.posterior, crowd), last.posterior.weight
            posterior = self._believe(fit, crowd, weight)
            return Reached(crowd, posterior, self._objective(fit, posterior, crowd))

        def settled(trace: list[float], _now: Reached, _before: Reached) -> bool:
            return still(trace, self.tol)

        ended = rounds(Reached(self._begin(fit)), advance, settled, self.max_iter, fit.progress)
        crowd, posterior, _ = ended.last
        assert posterior is not None  # after a round there is one
        return self.conclude(
            fit,
            posterior.value,
            np.sqrt(posterior.variance),
            weight=crowd.precision,
            bias=crowd.bias,
            noise=1 / np.sqrt(crowd.precision),
            trace=ended.trace,
            converged=ended.converged,
        )

    def _begin(self, fit: Fit) -> Crowd:
        value = fit.keep_gold(fit.mean(np.ones(len(fit.annotations))))
        value = value[~np.isnan(value)]
        size = fit.annotations.n_annotators
        spread = max(float(value.var()), _LEAST * fit.variance)
        return Crowd(float(value.mean()), spread, np.zeros(size), np.full(size, 1 / fit.variance))

    def _believe(self, fit: Fit, crowd: Crowd, weight: Floats) -> Belief:
        """Return the values under the parameters; gold is known for certain."""
        annotator = fit.annotations.annotator
        unbiased = fit.annotations.value - crowd.bias[annotator]
        counts = weight * crowd.precision[annotator]
        precision = 1 / crowd.spread + fit.by_item(counts)
        pull = fit.by_item(counts * (unbiased - crowd.mean))
        value = fit.keep_gold(crowd.mean + pull / precision)
        variance = np.where(np.isnan(fit.gold), 1 / precision, 0.0)
        error = (unbiased - value[fit.item]) ** 2 + variance[fit.item]
        if self.freedom is not None:
            weight = (self.freedom + 1) / (self.freedom + crowd.precision[annotator] * error)
        return Belief(value, variance, error, weight)

    def _learn(self, fit: Fit, posterior: Belief, last: Crowd) -> Crowd:
        annotator, weight = fit.annotations.annotator, posterior.weight
        off = fit.off(posterior.value)
        pull = last.precision * fit.by_annotator(weight * off)
        bias = pull / (self.firmness + last.precision * fit.by_annotator(weight))
        error = (off - bias[annotator]) ** 2 + posterior.variance[fit.item]
        freedom = fit.annotations.labels_per_annotator + 2 * (self.shape - 1)
        squares = fit.by_annotator(weight * error)
        precision = np.maximum(freedom, _LEAST) / (squares + 2 * self._rate(fit))
        told = _told(fit)
        value, variance = posterior.value[told], posterior.variance[told]
        mean = float(value.mean())
        spread = float(((value - mean) ** 2 + variance).mean())
        return Crowd(mean, max(spread, _LEAST * fit.variance), bias, precision)

    def _objective(self, fit: Fit, posterior: Belief, crowd: Crowd) -> float:
        """Return how probable answers and gold are, times the priors of the parameters."""
        precision = crowd.precision[fit.annotations.annotator]
        answers = np.log(precision / (2 * np.pi)) / 2 + self._log_error(precision * posterior.error)
        told = _told(fit)
        value, variance = posterior.value[told], posterior.variance[told]
        open_ = variance > 0  # what is certain has no entropy
        entropy = np.log(2 * np.pi * np.e * variance[open_]).sum() / 2
        values = (
            np.log(2 * np.pi * crowd.spread) + ((value - crowd.mean) ** 2 + variance) / crowd.spread
        )
        priors = ((self.shape - 1) * np.log(crowd.precision)).sum()
        priors -= (
            self._rate(fit) * crowd.precision.sum() + self.firmness / 2 * (crowd.bias**2).sum()
        )
        return float(answers.sum() - values.sum() / 2 + entropy + priors)

    def _rate(self, fit: Fit) -> float:
        return fit.variance if self.rate == "all" else fit.within

    def _log_error(self, squared: Floats) -> Floats:
        """Return the logarithm of the density of errors, in units of their precision."""
        if self.freedom is None:
            return -squared / 2
        half = self.freedom / 2
        constant = half * np.log(half) - gammaln(half) + gammaln(half + 0.5)
        return constant - (half + 0.5) * np.log(half + squared / 2)


_LEAST = 1e-9  # least variance of the values, as a share of that of all answers


def _told(fit: Fit) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the items about which something is known."""
    return (fit.annotations.labels_per_item > 0) | ~np.isnan(fit.gold)
