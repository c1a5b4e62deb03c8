"""One coin per annotator: one accuracy, whatever the true class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from ..base.probability import normalize, safe_log
from ..base.arrays import Array, Floats, Integers
from ..answers.annotations import Annotations, Part
from ..params import NonNegative, Probability
from .em import EMAggregator

_EDGE = 1e-10  # no accuracy is exactly 0 or 1


class Coins(NamedTuple):
    """Parameters of the one-coin model."""

    prior: Floats  # (true class)
    right: Floats  # (annotator): the probability of being right

    def reindex(self, indices: Integers, n_items: int) -> Coins:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        average = self.right.mean(keepdims=True) if len(self.right) else np.array([0.5])
        return Coins(self.prior, np.concatenate([self.right, average])[indices])


class Counts(NamedTuple):
    """Expected sufficient statistics; they add up over parts of the items."""

    true: Floats  # (true class)
    right: Floats  # (annotator)
    labels: Floats  # (annotator)


@dataclass(frozen=True, kw_only=True)
class OneCoin(EMAggregator[Coins, Counts]):
    """One probability of being right per annotator, fitted with EM.

    One coin per annotator: one accuracy, whatever the true class.

    The truth of an item is drawn from `prior`. Annotator a is right with probability `right[a]`,
    whatever the truth; errors are spread evenly over the other classes. With one parameter per
    annotator, the cost of an iteration does not depend on the number of classes. The model cannot
    express that a class is often missed: on imbalanced classes it may collapse to the most common
    one, and a `uniform` prevalence is then safer.

        P(labels of i, t) = prior[t] · Π_a (right[a] if a's label is t else wrong[a])
        wrong[a] = (1 - right[a]) / (n_classes - 1)

    When it fails: Where classes are confused asymmetrically: on bluebirds, where a bird is often
    missed but seldom seen in error, it is right in 58 % and plain votes in 76 %.

        Y. Zhang, X. Chen, D. Zhou, M. I. Jordan. Spectral methods meet EM: a provably optimal
        algorithm for crowdsourcing. JMLR 17(102), 2016.
        G. Demartini, D. E. Difallah, P. Cudré-Mauroux. ZenCrowd: leveraging probabilistic reasoning
        and crowdsourcing techniques for large-scale entity linking. WWW 2012.
        doi:10.1145/2187836.2187900

    Parameters
    ----------
    prevalence
        Whether the prevalence of classes is `estimated` or `uniform`.
    strength
        Pseudo-counts of every annotator: the strength of a Beta prior.
    accuracy
        The fraction of them that is right.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> OneCoin().fit(annotations).quality.round(2).tolist()
    [1.0, 1.0, 0.0]
    """

    params_type: ClassVar[type] = Coins

    prevalence: Literal["estimated", "uniform"] = "estimated"
    strength: NonNegative = 0.01
    accuracy: Probability = 0.7

    def log_joint(self, part: Part, params: Coins) -> Floats:
        others = max(part.n_classes - 1, 1)
        right, wrong = np.log(params.right), np.log((1 - params.right) / others)
        joint = part.votes((right - wrong)[part.annotator])
        joint += part.by_item(wrong[part.annotator])[:, None]
        joint += safe_log(params.prior)
        return joint

    def counts(self, part: Part, posterior: Floats) -> Counts:
        right = part.by_annotator(part.given_posterior(posterior))
        return Counts(np.einsum("it->t", posterior), right, part.by_annotator(part.ones))

    def update(self, counts: Counts, last: Coins | None) -> Coins:
        right = counts.right + self.strength * self.accuracy
        wrong = counts.labels - counts.right + self.strength * (1 - self.accuracy)
        right = normalize(np.stack([right, np.maximum(wrong, 0.0)]), axis=0)[0]
        flat = self.prevalence == "uniform"
        prior = normalize(np.ones_like(counts.true) if flat else counts.true)
        return Coins(prior, np.clip(right, _EDGE, 1 - _EDGE))

    def log_prior(self, params: Coins) -> float:
        right, wrong = np.log(params.right).sum(), np.log1p(-params.right).sum()
        return float(self.strength * (self.accuracy * right + (1 - self.accuracy) * wrong))

    def confusion(self, params: Coins) -> Floats:
        n_classes = len(params.prior)
        others = max(n_classes - 1, 1)
        wrong = ((1 - params.right) / others)[:, None, None]
        eye = np.eye(n_classes)
        return np.where(eye, params.right[:, None, None] if n_classes > 1 else 1.0, wrong)

    def label_probabilities(self, params: Coins, item: Array, annotator: Array) -> Floats:
        return self.confusion(Coins(params.prior, params.right[annotator]))

    def quality(self, params: Coins, agreement: Floats) -> Floats:
        return params.right

    def n_floats(self, annotations: Annotations) -> int:
        return 2 * super().n_floats(annotations)
