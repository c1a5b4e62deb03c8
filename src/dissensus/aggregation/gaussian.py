"""Gaussian errors: every annotator has a bias and a precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from annotated_types import Ge
from scipy.special import gammaln

from ..base.iteration import iterate, relative_change_below
from ..base.arrays import Floats
from ..params import Count, NonNegative, Positive
from ..result import Estimation
from .numbers import Estimator, NumericContext


class GaussianParams(NamedTuple):
    """Parameters of the model."""

    mean: float  # of all values
    spread: float  # variance of the values
    bias: Floats  # (annotator)
    precision: Floats  # (annotator)


class ValuePosterior(NamedTuple):
    """The posterior of the values, and the weights of answers."""

    value: Floats  # (item)
    variance: Floats  # (item)
    error: Floats  # (answer): expected squared error
    weight: Floats  # (answer): 1, unless errors follow Student's t


class State(NamedTuple):
    """The state after an iteration."""

    params: GaussianParams
    posterior: ValuePosterior | None = None  # none before the first iteration
    objective: float = np.nan


@dataclass(frozen=True, kw_only=True)
class Gaussian(Estimator):
    """Values, biases and precisions under normal errors, fitted with EM.

    Gaussian errors: every annotator has a bias and a precision.

    The value of an item is drawn from a normal distribution around `mean`. Annotator a answers
    value + bias[a] + error, the error normal with precision[a]. Biases are normal around 0,
    precisions have a Gamma prior; without it, the likelihood has no bound: a variance goes to zero
    while the values copy one annotator. Fitted with EM; the penalized likelihood never falls.

    With `freedom`, errors follow Student's t, which is robust against outliers: every answer has a
    weight of its own, and the objective is the corresponding lower bound of the likelihood.

    A common shift of all values and all biases is identified by the biases' prior alone, and EM
    finds it slowly; a smaller `tol` takes longer to find it.

        answer[i, a] = value[i] + bias[a] + e / sqrt(precision[a]),   value[i] ~ N(mean, spread)

    When it fails: Where annotators stretch or compress the scale, a bias does not describe them.
    Common biases cannot be seen: if everybody is too high, so are the values.

        V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni, L. Moy. Learning from
        crowds. Journal of Machine Learning Research 11, 2010. (The model without biases and
        priors.)

    Parameters
    ----------
    max_iter
        Maximum number of iterations.
    tol
        Relative change of the objective below which the fit has converged.
    shape
        Shape of the precisions' prior; larger values shrink them together.
    rate
        Rate of the precisions' prior: the variance of `all` answers, or of those `within` items.
        The former counts differences between items as noise.
    firmness
        Precision of the biases' prior, in units of the answers.
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

    def infer(self, fit: NumericContext) -> Estimation:
        def advance(last: State) -> State:
            params, weight = last.params, np.ones(len(fit.annotations))
            if last.posterior is not None:
                params, weight = self._m_step(fit, last.posterior, params), last.posterior.weight
            posterior = self._e_step(fit, params, weight)
            return State(params, posterior, self._objective(fit, posterior, params))

        def has_converged(trace: list[float], _state: State, _last: State) -> bool:
            return relative_change_below(trace, self.tol)

        first = State(self._first_params(fit))
        (params, posterior, _), trace, converged = iterate(
            first, advance, has_converged, self.max_iter, fit.progress
        )
        assert posterior is not None  # after an iteration there is one
        return self.result(
            fit,
            posterior.value,
            np.sqrt(posterior.variance),
            weight=params.precision,
            bias=params.bias,
            noise=1 / np.sqrt(params.precision),
            trace=trace,
            converged=converged,
        )

    def _first_params(self, fit: NumericContext) -> GaussianParams:
        value = fit.keep_gold(fit.mean(np.ones(len(fit.annotations))))
        value = value[~np.isnan(value)]
        size = fit.annotations.n_annotators
        spread = max(float(value.var()), _LEAST * fit.variance)
        return GaussianParams(
            float(value.mean()), spread, np.zeros(size), np.full(size, 1 / fit.variance)
        )

    def _e_step(
        self, fit: NumericContext, params: GaussianParams, weight: Floats
    ) -> ValuePosterior:
        """Return the posterior of the values under the parameters."""
        annotator = fit.annotations.annotator
        unbiased = fit.annotations.value - params.bias[annotator]
        counts = weight * params.precision[annotator]
        precision = 1 / params.spread + fit.by_item(counts)
        pull = fit.by_item(counts * (unbiased - params.mean))
        value = fit.keep_gold(params.mean + pull / precision)
        variance = np.where(np.isnan(fit.gold), 1 / precision, 0.0)
        error = (unbiased - value[fit.item]) ** 2 + variance[fit.item]
        if self.freedom is not None:
            weight = (self.freedom + 1) / (self.freedom + params.precision[annotator] * error)
        return ValuePosterior(value, variance, error, weight)

    def _m_step(
        self, fit: NumericContext, posterior: ValuePosterior, last: GaussianParams
    ) -> GaussianParams:
        annotator, weight = fit.annotations.annotator, posterior.weight
        difference = fit.errors(posterior.value)
        pull = last.precision * fit.by_annotator(weight * difference)
        bias = pull / (self.firmness + last.precision * fit.by_annotator(weight))
        error = (difference - bias[annotator]) ** 2 + posterior.variance[fit.item]
        freedom = fit.annotations.labels_per_annotator + 2 * (self.shape - 1)
        squares = fit.by_annotator(weight * error)
        precision = np.maximum(freedom, _LEAST) / (squares + 2 * self._rate(fit))
        known = _known(fit)
        value, variance = posterior.value[known], posterior.variance[known]
        mean = float(value.mean())
        spread = float(((value - mean) ** 2 + variance).mean())
        return GaussianParams(mean, max(spread, _LEAST * fit.variance), bias, precision)

    def _objective(
        self, fit: NumericContext, posterior: ValuePosterior, params: GaussianParams
    ) -> float:
        """Return the log probability of answers, gold and parameters."""
        precision = params.precision[fit.annotations.annotator]
        answers = np.log(precision / (2 * np.pi)) / 2 + self._log_error(precision * posterior.error)
        known = _known(fit)
        value, variance = posterior.value[known], posterior.variance[known]
        open_ = variance > 0  # gold has no entropy
        entropy = np.log(2 * np.pi * np.e * variance[open_]).sum() / 2
        values = (
            np.log(2 * np.pi * params.spread)
            + ((value - params.mean) ** 2 + variance) / params.spread
        )
        priors = ((self.shape - 1) * np.log(params.precision)).sum()
        priors -= (
            self._rate(fit) * params.precision.sum() + self.firmness / 2 * (params.bias**2).sum()
        )
        return float(answers.sum() - values.sum() / 2 + entropy + priors)

    def _rate(self, fit: NumericContext) -> float:
        return fit.variance if self.rate == "all" else fit.within

    def _log_error(self, squared: Floats) -> Floats:
        """Return the log density of errors, in units of their precision."""
        if self.freedom is None:
            return -squared / 2
        half = self.freedom / 2
        constant = half * np.log(half) - gammaln(half) + gammaln(half + 0.5)
        return constant - (half + 0.5) * np.log(half + squared / 2)


_LEAST = 1e-9  # least variance of the values, as a fraction of that of all answers


def _known(fit: NumericContext) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the items with answers or gold."""
    return (fit.annotations.labels_per_item > 0) | ~np.isnan(fit.gold)
