"""Truth discovery: weights of annotators from their losses, for classes and for numbers.

A loss is the number of wrong labels, or a sum of distances from the inferred values. Values follow
from the weights of annotators, weights from their losses, in turns. A method states how losses
become weights; the turns are those of `IteratedVote` for classes, of `WeightedMean` for numbers,
which has the start, gold, convergence and standard errors.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from annotated_types import Interval
from scipy.special import gammaincinv

from ..base.arrays import Floats, Integers
from ..base.iteration import iterate
from ..params import Count, NonNegative, Positive, Settings
from .aggregation import NumberAggregation
from .classes import ClassContext
from .numbers import NumberContext, NumberMethod, ratio
from .votes import IteratedVote, Record

_LEAST_LOSS = 1e-9  # added to every loss, in units of the losses
_LEAST_SHARE = 1e-12
_LEAST_WEIGHT = 1e-12  # where nobody else answered, the worst annotator decides


@dataclass(frozen=True, kw_only=True)
class TruthDiscovery(Settings, ABC):
    """Weights of annotators from their losses."""

    @abstractmethod
    def weights(self, loss: Floats, labels: Floats | Integers, unit: float) -> Floats:
        """Return the weights: (annotator)."""

    @abstractmethod
    def objectives(self, loss: Floats, labels: Floats | Integers, unit: float) -> Floats:
        """Return every annotator's part of the objective."""

    @property
    def has_objective(self) -> bool:
        """Whether truths and weights maximize a common objective."""
        return True


@dataclass(frozen=True, kw_only=True)
class CatdWeights(TruthDiscovery):
    """One over the upper confidence bound of the rate of loss.

    Parameters
    ----------
    alpha
        One minus the level of the confidence interval.
    """

    alpha: Annotated[float, Interval(gt=0, lt=1)] = 0.05

    def quantile(self, labels: Floats | Integers) -> Floats:
        """Return the lower quantile of chi-squared with as many degrees of freedom as labels.

        >>> from dissensus.aggregation import Catd
        >>> Catd().quantile(np.array([0, 1, 10])).round(3).tolist()
        [0.0, 0.001, 3.247]
        """
        quantile = 2 * gammaincinv(np.maximum(labels, 1) / 2, self.alpha / 2)
        return np.where(labels > 0, quantile, 0.0)

    def weights(self, loss: Floats, labels: Floats | Integers, unit: float) -> Floats:
        return self.quantile(labels) / (loss + _LEAST_LOSS * unit)

    def objectives(self, loss: Floats, labels: Floats | Integers, unit: float) -> Floats:
        return -self.quantile(labels) * np.log(loss + _LEAST_LOSS * unit)


@dataclass(frozen=True, kw_only=True)
class CrhWeights(TruthDiscovery):
    """Minus the logarithm of the share in all losses.

    Parameters
    ----------
    per_label
        Whether an annotator's loss is the mean over their labels instead of the sum, so that many
        labels are no disadvantage. Truths and weights then have no common objective.
    """

    per_label: bool = False

    @property
    def has_objective(self) -> bool:
        return not self.per_label

    def reference(self, loss: Floats) -> float:
        """Return what losses are divided by: their sum."""
        return float(loss.sum())

    def weights(self, loss: Floats, labels: Floats | Integers, unit: float) -> Floats:
        if self.per_label:
            loss = loss / np.maximum(labels, 1)
        reference = self.reference(loss)
        if reference <= 0:
            return np.ones(len(loss))
        share = np.clip(loss / reference, _LEAST_SHARE, 1)
        return np.maximum(np.log(1 / share), _LEAST_WEIGHT)

    def objectives(self, loss: Floats, labels: Floats | Integers, unit: float) -> Floats:
        return -self.weights(loss, labels, unit) * loss


@dataclass(frozen=True, kw_only=True)
class PmWeights(CrhWeights):
    """Minus the logarithm of the loss as a fraction of the largest loss."""

    @property
    def has_objective(self) -> bool:
        return False

    def reference(self, loss: Floats) -> float:
        return float(loss.max())


@dataclass(frozen=True, kw_only=True)
class DiscoveryVote(TruthDiscovery, IteratedVote):
    """Votes weighted by truth discovery; the loss is the number of wrong labels."""

    def weight(self, record: Record) -> Floats:
        return self.weights(record.wrong, record.labels, 1.0)

    def objective(self, record: Record) -> Floats:
        return self.objectives(record.wrong, record.labels, 1.0)


@dataclass(frozen=True, kw_only=True)
class Catd(CatdWeights, DiscoveryVote):
    """Votes weighted by a lower bound of annotators' precision.

    CATD: annotators are weighted by a confidence bound of their error rate.

    Every annotator's labels are compared with the present vote. Their weight is one over the upper
    bound of a confidence interval for their error rate: the lower quantile of chi-squared with as
    many degrees of freedom as labels, divided by the number of wrong ones. So annotators with few
    labels count less than their few errors suggest. It iterates until the vote does not change; no
    iteration raises the sum over annotators of quantile times the logarithm of wrong labels.

        wrong[a] = number of a's labels that differ from the present vote
        weight[a] = chi-squared quantile(significance / 2, labels[a]) / wrong[a]

    When it fails: An annotator who agrees with every vote gets a very large weight and may decide
    alone. As in all methods that judge annotators by the vote, a common bias is taken for quality.

        Q. Li, Y. Li, J. Gao, L. Su, B. Zhao, M. Demirbas, W. Fan, J. Han. A confidence-aware
        approach for truth discovery on long-tail data. Proceedings of the VLDB Endowment 8(4),
        2014.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001110110")
    >>> Catd().fit(annotations).params.weight.round(2)[2]
    np.float64(0.07)
    """

    def first_record(self, fit: ClassContext) -> Record:
        return self.record(fit)  # always from plain votes: there are several fixed points


@dataclass(frozen=True, kw_only=True)
class Crh(CrhWeights, DiscoveryVote):
    """Votes weighted by the logarithm of annotators' share in all errors.

    CRH: annotators are weighted by their share in all errors.

    Every annotator's labels are compared with the present vote. Their weight is minus the logarithm
    of their share in the wrong labels of all. It iterates until the vote does not change; vote and
    weights each minimize the weighted number of wrong labels, the weights under the constraint that
    exp(-weight) sums to one, so it never rises.

        weight[a] = -log(wrong[a] / Σ_b wrong[b])

    When it fails: Annotators with many labels have many wrong ones, so those who work most count
    least, however good they are. A common bias is taken for quality.

        Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan, J. Han. Resolving conflicts in heterogeneous data by
        truth discovery and source reliability estimation. Proceedings of SIGMOD, 2014.
        doi:10.1145/2588555.2610509

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001110010")
    >>> Crh().fit(annotations).params.weight.round(2).tolist()
    [27.63, 1.1, 0.41]
    """


@dataclass(frozen=True, kw_only=True)
class Pm(PmWeights, DiscoveryVote):
    """Votes weighted by the logarithm of annotators' errors relative to the largest number.

    PM: as CRH, but errors are divided by the largest number of them instead of the sum.

    So the worst annotator has no weight, except where nobody else answered. Vote and weights have
    no common objective; it iterates until the vote does not change.

        weight[a] = -log(wrong[a] / max_b wrong[b])

    When it fails: As `crh`: counts of errors, not rates, decide, so the most prolific annotator may
    lose all weight. It has no objective that shows whether it has improved.

        B. I. Aydin, Y. S. Yilmaz, Y. Li, Q. Li, J. Gao, M. Demirbas. Crowdsourcing for
        multiple-choice question answering. Proceedings of AAAI, 2014.

        Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan, J. Han. Resolving conflicts in heterogeneous data by
        truth discovery and source reliability estimation. Proceedings of SIGMOD, 2014.
        doi:10.1145/2588555.2610509

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbccc", "xyzxyzxyz", "001110010")
    >>> Pm().fit(annotations).params.weight.round(2).tolist()
    [27.63, 0.69, 0.0]
    """


class State(NamedTuple):
    """The state after an iteration."""

    value: Floats  # (item)
    weight: Floats = np.empty(0)  # (annotator)
    objective: float = math.nan


@dataclass(frozen=True, kw_only=True)
class WeightedMean(NumberMethod):
    """Weighted means and weights of annotators, in turns.

    Parameters
    ----------
    max_iter
        Maximum number of iterations.
    tol
        Root mean square change of the values below which the fit has converged, in standard
        deviations of the answers.
    """

    max_iter: Count = 50
    tol: NonNegative = 1e-6

    @abstractmethod
    def weight(self, fit: NumberContext, loss: Floats) -> Floats:
        """Return the weight of every annotator from the sum of their losses."""

    def objective(self, fit: NumberContext, loss: Floats) -> float:
        """Return the objective that iterations maximize; NaN where there is none."""
        return math.nan

    def losses(self, fit: NumberContext, value: Floats) -> Floats:
        """Return the loss of every answer."""
        return fit.errors(value) ** 2

    def locate(self, fit: NumberContext, weight: Floats) -> Floats:
        """Return the best value of every item under weights of answers."""
        return fit.mean(weight)

    def start(self, fit: NumberContext) -> Floats:
        """Return the values to start from."""
        return fit.mean(np.ones(len(fit.answers)))

    def deviation(self, fit: NumberContext, value: Floats, weight: Floats) -> Floats:
        """Return standard errors of weighted means, from the errors of annotators."""
        size = fit.answers.labels_per_annotator
        variance = ratio(fit.by_annotator(fit.errors(value) ** 2), size)[fit.answers.annotator]
        return ratio(np.sqrt(fit.by_item(weight**2 * variance)), fit.by_item(weight))

    def infer(self, fit: NumberContext) -> NumberAggregation:
        annotator = fit.answers.annotator

        def advance(last: State) -> State:
            loss = fit.by_annotator(self.losses(fit, last.value))
            weight = self.weight(fit, loss)
            value = fit.keep_gold(self.locate(fit, weight[annotator]))
            return State(value, weight, self.objective(fit, loss))

        start = State(fit.keep_gold(self.start(fit)))
        settled = fit.values_settle(self.tol)
        (value, weight, _), trace, converged = iterate(
            start, advance, settled, max_iter=self.max_iter, progress=fit.progress
        )
        return self.result(
            fit,
            value,
            self.deviation(fit, value, weight[annotator]),
            weight=weight,
            trace=() if np.isnan(trace).any() else trace,
            converged=converged,
        )


@dataclass(frozen=True, kw_only=True)
class DiscoveryMean(TruthDiscovery, WeightedMean):
    """Means weighted by truth discovery."""

    def weight(self, fit: NumberContext, loss: Floats) -> Floats:
        return self.weights(loss, fit.answers.labels_per_annotator, fit.variance)

    def objective(self, fit: NumberContext, loss: Floats) -> float:
        if not self.has_objective:
            return math.nan
        labels = fit.answers.labels_per_annotator
        return float(self.objectives(loss, labels, fit.variance).sum())


@dataclass(frozen=True, kw_only=True)
class NumberCatd(CatdWeights, DiscoveryMean):
    """Means weighted by a lower bound of annotators' precision.

    CATD for numbers: annotators are weighted by a confidence bound of their variance.

    An annotator's weight is one over the upper bound of a confidence interval for their variance:
    the lower quantile of chi-squared with as many degrees of freedom as answers, divided by the sum
    of squared errors. So annotators with few answers count less than their small errors suggest.
    Values are means under these weights. Iterations minimize the sum over annotators of quantile
    times log loss.

        weight[a] = chi-squared quantile(significance / 2, answers[a]) / Σ (answer - value)²

    When it fails: An annotator who happens to lie on all means gets nearly all the weight. Biases
    are counted as noise.

        Q. Li, Y. Li, J. Gao, L. Su, B. Zhao, M. Demirbas, W. Fan, J. Han. A confidence-aware
        approach for truth discovery on long-tail data. Proceedings of the VLDB Endowment 8(4),
        2014.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 0, 5, 5.1, 9])
    >>> NumberCatd().fit(annotations).value.round(1).tolist()
    [1.0, 2.0, 5.1]
    """

    def start(self, fit: NumberContext) -> Floats:
        return fit.median(np.ones(len(fit.answers)))


@dataclass(frozen=True, kw_only=True)
class CrhLosses(DiscoveryMean):
    """Losses in units of the standard deviation of an item's answers.

    Parameters
    ----------
    loss
        The `squared` distance, which gives means, or the `absolute` one, which gives medians.
    """

    loss: Literal["squared", "absolute"] = "squared"

    def losses(self, fit: NumberContext, value: Floats) -> Floats:
        error = fit.errors(fit.mean(np.ones(len(fit.answers))))
        spread = np.sqrt(ratio(fit.by_item(error**2), fit.answers.labels_per_item))
        spread[spread == 0] = np.sqrt(fit.variance)
        distance = abs(fit.errors(value))
        return (distance**2 if self.loss == "squared" else distance) / spread[fit.item]

    def locate(self, fit: NumberContext, weight: Floats) -> Floats:
        return fit.median(weight) if self.loss == "absolute" else fit.mean(weight)

    def deviation(self, fit: NumberContext, value: Floats, weight: Floats) -> Floats:
        if self.loss == "absolute":
            return np.full(len(value), np.nan)
        return super().deviation(fit, value, weight)


@dataclass(frozen=True, kw_only=True)
class NumberCrh(CrhWeights, CrhLosses):
    """Means weighted by the logarithm of annotators' share in all losses.

    CRH for numbers: annotators are weighted by their share in all losses.

    An answer's loss is its squared distance from the item's value, divided by the standard
    deviation of the item's answers, so that hard items do not decide alone. An annotator's weight
    is minus the logarithm of their share in the losses of all; the value of an item is the mean
    under these weights, or the median where the loss is the absolute distance. Weights and values
    each minimize the weighted loss, the weights under the constraint that exp(-weight) sums to one,
    so it never rises.

        weight[a] = -log(loss[a] / Σ_b loss[b])

    When it fails: Losses are sums, so those who answer most count least. Biases are counted as
    noise.

        Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan, J. Han. Resolving conflicts in heterogeneous data by
        truth discovery and source reliability estimation. Proceedings of SIGMOD, 2014.
        doi:10.1145/2588555.2610509

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 0, 5, 5.1, 9])
    >>> NumberCrh(loss="absolute").fit(annotations).value.tolist()
    [1.0, 2.0, 5.1]
    """


@dataclass(frozen=True, kw_only=True)
class LfcN(WeightedMean):
    """Means weighted by one over the variance of annotators.

    LFC-N: means weighted by one over the variance of annotators.

    In turns: an annotator's variance is their mean squared error; an item's value is the mean of
    its answers, weighted by one over the variance. Every iteration raises the likelihood under
    normal errors. A variance has a floor, because the likelihood is unbounded: without it, values
    may copy one annotator whose variance goes to zero.

        variance[a] = mean over the items of a of (answer - value)²
        value[i] = (Σ_a answer / variance[a]) / (Σ_a 1 / variance[a])

    When it fails: It has no biases: an annotator who is exactly 2 too high counts as noisy. With
    few answers per annotator the most accurate one so far may take over.

        V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni, L. Moy. Learning from
        crowds. Journal of Machine Learning Research 11, 2010.

    Parameters
    ----------
    floor
        Least variance of an annotator, as a fraction of the variance of all answers.

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 0, 5, 5.1, 9])
    >>> LfcN().fit(annotations).value.round(1).tolist()
    [1.0, 2.0, 5.1]
    """

    floor: Positive = 1e-9

    def weight(self, fit: NumberContext, loss: Floats) -> Floats:
        return 1 / self._variance(fit, loss)

    def objective(self, fit: NumberContext, loss: Floats) -> float:
        size, variance = fit.answers.labels_per_annotator, self._variance(fit, loss)
        return -0.5 * float((size * np.log(2 * np.pi * variance) + loss / variance).sum())

    def _variance(self, fit: NumberContext, loss: Floats) -> Floats:
        size = np.maximum(fit.answers.labels_per_annotator, 1)
        return np.maximum(loss / size, self.floor * fit.variance)


@dataclass(frozen=True, kw_only=True)
class NumberPm(PmWeights, CrhLosses):
    """Means weighted by the logarithm of annotators' losses relative to the largest.

    PM for numbers: as CRH, but losses are divided by the largest instead of the sum.

    So the worst annotator has no weight, except where nobody else answered. Values and weights have
    no common objective.

        weight[a] = -log(loss[a] / max_b loss[b])

    When it fails: As `crh`; the annotator with the largest loss, often the most prolific one, has
    no weight at all.

        B. I. Aydin, Y. S. Yilmaz, Y. Li, Q. Li, J. Gao, M. Demirbas. Crowdsourcing for
        multiple-choice question answering. Proceedings of AAAI, 2014.

        Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan, J. Han. Resolving conflicts in heterogeneous data by
        truth discovery and source reliability estimation. Proceedings of SIGMOD, 2014.
        doi:10.1145/2588555.2610509

    Examples
    --------
    >>> from dissensus import Numbers
    >>> annotations = Numbers.from_columns("aaabbbccc", "xyzxyzxyz", [1, 1, 3, 2, 2, 0, 5, 5.1, 9])
    >>> NumberPm().fit(annotations).value.round(1).tolist()
    [1.0, 2.0, 5.1]
    """
