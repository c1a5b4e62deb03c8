"""Numbers with normal errors: every annotator has a bias and a precision.

Values, biases and precisions are estimated together, all of them with priors, since the likelihood
alone is unbounded: a variance may go to zero while the values copy one annotator. In peer grading
the annotators are authors too, and how good their own work is may tell how well they grade.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

import numpy as np
from annotated_types import Ge
from scipy.special import digamma, gammaln, polygamma

from ..answers.numbers import Numbers
from ..answers.selections import author_codes
from ..base.arrays import Floats, Integers
from ..base.iteration import iterate, objective_settles
from ..params import Count, NonNegative, Positive, table_of
from .aggregation import NumberAggregation
from .numbers import NumberContext, NumberMethod, ratio

_LEAST = 1e-9  # least variance of values and biases, as a fraction of that of all answers
_SHAPE = 4.0  # of the precisions, before any answer is seen


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
class Gaussian(NumberMethod):
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

    def infer(self, fit: NumberContext) -> NumberAggregation:
        def advance(last: State) -> State:
            params, weight = last.params, np.ones(len(fit.answers))
            if last.posterior is not None:
                params, weight = self._m_step(fit, last.posterior, params), last.posterior.weight
            posterior = self._e_step(fit, params, weight)
            return State(params, posterior, self._objective(fit, posterior, params))

        start = State(self._first_params(fit))
        settled = objective_settles(self.tol)
        (params, posterior, _), trace, converged = iterate(
            start, advance, settled, max_iter=self.max_iter, progress=fit.progress
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

    def _first_params(self, fit: NumberContext) -> GaussianParams:
        value = fit.keep_gold(fit.mean(np.ones(len(fit.answers))))
        value = value[~np.isnan(value)]
        size = fit.answers.n_annotators
        spread = max(float(value.var()), _LEAST * fit.variance)
        return GaussianParams(
            float(value.mean()), spread, np.zeros(size), np.full(size, 1 / fit.variance)
        )

    def _e_step(self, fit: NumberContext, params: GaussianParams, weight: Floats) -> ValuePosterior:
        """Return the posterior of the values under the parameters."""
        annotator = fit.answers.annotator
        unbiased = fit.answers.value - params.bias[annotator]
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
        self, fit: NumberContext, posterior: ValuePosterior, last: GaussianParams
    ) -> GaussianParams:
        annotator, weight = fit.answers.annotator, posterior.weight
        difference = fit.errors(posterior.value)
        pull = last.precision * fit.by_annotator(weight * difference)
        bias = pull / (self.firmness + last.precision * fit.by_annotator(weight))
        error = (difference - bias[annotator]) ** 2 + posterior.variance[fit.item]
        freedom = fit.answers.labels_per_annotator + 2 * (self.shape - 1)
        squares = fit.by_annotator(weight * error)
        precision = np.maximum(freedom, _LEAST) / (squares + 2 * self._rate(fit))
        has_value = _has_value(fit)
        value, variance = posterior.value[has_value], posterior.variance[has_value]
        mean = float(value.mean())
        spread = float(((value - mean) ** 2 + variance).mean())
        return GaussianParams(mean, max(spread, _LEAST * fit.variance), bias, precision)

    def _objective(
        self, fit: NumberContext, posterior: ValuePosterior, params: GaussianParams
    ) -> float:
        """Return the log probability of answers, gold and parameters."""
        precision = params.precision[fit.answers.annotator]
        answers = np.log(precision / (2 * np.pi)) / 2 + self._log_error(precision * posterior.error)
        has_value = _has_value(fit)
        value, variance = posterior.value[has_value], posterior.variance[has_value]
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

    def _rate(self, fit: NumberContext) -> float:
        return fit.variance if self.rate == "all" else fit.within

    def _log_error(self, squared: Floats) -> Floats:
        """Return the log density of errors, in units of their precision."""
        if self.freedom is None:
            return -squared / 2
        half = self.freedom / 2
        constant = half * np.log(half) - gammaln(half) + gammaln(half + 0.5)
        return constant - (half + 0.5) * np.log(half + squared / 2)


def _has_value(fit: NumberContext) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the items with answers or gold."""
    return (fit.answers.labels_per_item > 0) | ~np.isnan(fit.gold)


class Prior(NamedTuple):
    """What all values, biases and precisions have in common."""

    mean: float
    spread: float  # variance of the values
    bias_spread: float  # variance of the biases
    level: float  # log of a grader's mean precision, with an average grade of their own
    slope: float  # per standard deviation of the own grade
    shape: float  # the larger, the more alike are graders of the same level


class Grades(NamedTuple):
    """Posterior means and variances."""

    value: Floats  # (item)
    value_variance: Floats  # (item)
    bias: Floats  # (annotator)
    bias_variance: Floats  # (annotator)
    precision: Floats  # (annotator)
    prior: Prior
    objective: float = np.nan  # there is none


@dataclass(frozen=True, kw_only=True)
class PeerGrading(NumberMethod):
    """Grades, with biases and reliabilities of graders who are authors, too.

    Peer grading: graders have a bias and a reliability, which may depend on their own grade.

        value[i]     ~ Normal(mean, spread)                 the grade that item i deserves
        bias[a]      ~ Normal(0, bias_spread)
        precision[a] ~ Gamma(shape, shape / level[a]),      log level[a] = level + slope own[a]
        answer       ~ Normal(value[i] + bias[a], 1 / precision[a])

    own[a] is the grade of what annotator a has submitted, in standard deviations from the mean;
    without a submission it is 0. With slope 0 this is model PG1 of Piech et al.; their PG3 makes
    the precision a linear function of own[a] with nothing for the grader alone. Here the grade sets
    the mean of a grader's precision, and the answers of the grader move it from there. All of these
    are estimated; the slope is Normal(0, 1) and the log shape Normal(log 4, 1) before any answer is
    seen.

    Fitted by variational Bayes with independent values, biases and precisions; grades enter the
    levels by their means. Whoever grades own work has to be left out before, as `authors=` of
    `aggregate` does.

    When it fails: Graders who are all alike make it no better than the mean, and graders who agree
    on grades beforehand look reliable.

        C. Piech, J. Huang, Z. Chen, C. Do, A. Ng, D. Koller. Tuned models of peer assessment in
        MOOCs.
        International Conference on Educational Data Mining, 2013.

    Parameters
    ----------
    authors
        Whose item it is, `{item: annotator}`, or a file: a table with the columns item and author,
        a JSON object, or one annotator on each line.
    tied
        Whether the reliability of graders may depend on their own grade.
    max_iter
        Maximum number of iterations.
    tol
        Root mean square change of the values below which the fit has converged, in standard
        deviations of the answers.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> grades = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 4, 5, 5.1, 7])
    >>> PeerGrading().fit(grades).bias.round(1).tolist()
    [-0.7, -0.6, 1.3]
    """

    side_tables: ClassVar[tuple[str, ...]] = ("authors",)

    authors: Mapping[str, str] | str | None = None
    tied: bool = True
    max_iter: Count = 1000
    tol: NonNegative = 1e-5

    def with_authors(self, author_of: Mapping[str, str]) -> Self:
        return replace(self, authors=author_of)

    def infer(self, fit: NumberContext) -> NumberAggregation:
        author = author_codes(fit.answers, table_of("authors", self.authors))
        grades, _, converged = iterate(
            _first_grades(fit),
            lambda last: self._advance(fit, last, author),
            fit.values_settle(self.tol),
            max_iter=self.max_iter,
            progress=fit.progress,
        )
        return self.result(
            fit,
            grades.value,
            np.sqrt(grades.value_variance),
            weight=grades.precision,
            bias=grades.bias,
            noise=1 / np.sqrt(grades.precision),
            converged=converged,
        )

    def _advance(self, fit: NumberContext, last: Grades, author: Integers) -> Grades:
        annotator, answer = fit.answers.annotator, fit.answers.value
        prior, weight = last.prior, last.precision[annotator]
        counts = 1 / prior.spread + fit.by_item(weight)
        pull = fit.by_item(weight * (answer - last.bias[annotator] - prior.mean))
        value = fit.keep_gold(prior.mean + pull / counts)
        value_variance = np.where(np.isnan(fit.gold), 1 / counts, 0.0)
        counts = 1 / prior.bias_spread + fit.by_annotator(weight)
        bias = fit.by_annotator(weight * (answer - value[fit.item])) / counts
        error = (answer - value[fit.item] - bias[annotator]) ** 2
        error += value_variance[fit.item] + 1 / counts[annotator]
        own = _own_grades(value, author, fit.answers, prior) * self.tied
        level = np.exp(prior.level + prior.slope * own)
        shape = prior.shape + fit.answers.labels_per_annotator / 2
        precision = shape / (prior.shape / level + fit.by_annotator(error) / 2)
        grades = Grades(
            value=value,
            value_variance=value_variance,
            bias=bias,
            bias_variance=1 / counts,
            precision=precision,
            prior=prior,
        )
        return grades._replace(prior=self._updated(fit, grades, own, shape))

    def _updated(self, fit: NumberContext, grades: Grades, own: Floats, shape: Floats) -> Prior:
        """Return the prior under which values, biases and precisions are most probable."""
        active = fit.answers.labels_per_annotator > 0
        has_value = _has_value(fit)
        value, variance = grades.value[has_value], grades.value_variance[has_value]
        mean = float(value.mean())
        spread = float(((value - mean) ** 2 + variance).mean())
        bias_spread = float((grades.bias**2 + grades.bias_variance)[active].mean())
        precision, own = grades.precision[active], own[active]
        level, slope = _levels(precision, own, grades.prior)
        mean_log = digamma(shape[active]) - np.log(shape[active] / precision)
        log_level = level + slope * own
        excess = float((mean_log - log_level - precision / np.exp(log_level)).mean())
        least = _LEAST * fit.variance
        return Prior(
            mean=mean,
            spread=max(spread, least),
            bias_spread=max(bias_spread, least),
            level=level,
            slope=slope,
            shape=_shape(grades.prior.shape, excess, len(own)),
        )


def _first_grades(fit: NumberContext) -> Grades:
    value = fit.keep_gold(fit.mean(np.ones(len(fit.answers))))
    scored = value[~np.isnan(value)]
    n_items, n_annotators = fit.answers.n_items, fit.answers.n_annotators
    spread = max(float(scored.var()), _LEAST * fit.variance)
    prior = Prior(
        mean=float(scored.mean()),
        spread=spread,
        bias_spread=fit.within,
        level=-np.log(fit.within),
        slope=0.0,
        shape=_SHAPE,
    )
    return Grades(
        value=np.where(np.isnan(value), prior.mean, value),
        value_variance=np.zeros(n_items),
        bias=np.zeros(n_annotators),
        bias_variance=np.zeros(n_annotators),
        precision=np.full(n_annotators, 1 / fit.within),
        prior=prior,
    )


def _own_grades(value: Floats, author: Integers, answers: Numbers, prior: Prior) -> Floats:
    """Return the mean grade of every annotator's own items, standardized; 0 without any."""
    graded = (author >= 0) & ~np.isnan(value)
    standard = (value[graded] - prior.mean) / np.sqrt(prior.spread)
    size = np.bincount(author[graded], minlength=answers.n_annotators)
    total = np.bincount(author[graded], standard, minlength=answers.n_annotators).astype(float)
    return np.nan_to_num(ratio(total, size))


def _levels(precision: Floats, own: Floats, last: Prior) -> tuple[float, float]:
    """Return level and slope after a Newton step of the Gamma regression, log link."""
    part = precision / np.exp(last.level + last.slope * own) * last.shape
    gradient = np.array([part.sum() - last.shape * len(own), own @ part - last.shape * own.sum()])
    gradient[1] -= last.slope  # the prior of the slope
    curvature = np.array([[part.sum(), own @ part], [own @ part, own**2 @ part + 1]])
    step = np.linalg.solve(curvature, gradient)
    step *= min(1.0, 1.0 / max(np.abs(step).max(), 1e-12))
    return last.level + float(step[0]), last.slope + float(step[1])


def _shape(last: float, excess: float, size: int) -> float:
    """Return the shape after a Newton step on its logarithm.

    The objective is size · (shape log shape − log Γ(shape) + shape · excess), plus the prior.
    """
    gradient = size * last * (np.log(last) + 1 - digamma(last) + excess)
    curvature = size * last * (1 - last * polygamma(1, last)) + gradient - 1
    gradient -= np.log(last / _SHAPE)
    step = -gradient / curvature if curvature < 0 else np.sign(gradient)
    return float(last * np.exp(np.clip(step, -0.5, 0.5)))
