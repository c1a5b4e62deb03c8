"""One coin per annotator: right with a probability of their own, else any other label.

The truth of an item is drawn from `prior`. Annotator a is right with probability `right[a]`,
whatever the truth; wrong answers are spread evenly over the other classes. One number per
annotator, so a round costs the same for every annotation however many classes there are. The
model cannot tell that a class is often missed: where classes are far from equally common it may
fall into the most common one, and a `uniform` prevalence is then the safer choice.

    Y. Zhang, X. Chen, D. Zhou, M. I. Jordan. Spectral methods meet EM: a provably optimal
    algorithm for crowdsourcing. JMLR 17(102), 2016.
    G. Demartini, D. E. Difallah, P. Cudré-Mauroux. ZenCrowd: leveraging probabilistic reasoning
    and crowdsourcing techniques for large-scale entity linking. WWW 2012.
    doi:10.1145/2187836.2187900
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from .._relation import Array, Floats, Integers
from ..annotations import Annotations, Part
from ..params import NonNegative, Probability
from ._em import EMAggregator, logs, share

__all__ = ["Coins", "OneCoin"]

_EDGE = 1e-10  # nobody is always right or always wrong


class Coins(NamedTuple):
    """What the one-coin model learns."""

    prior: Floats  # (true class)
    right: Floats  # (annotator): the probability of being right

    def reindex(self, indices: Integers, n_items: int) -> Coins:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        average = self.right.mean(keepdims=True) if len(self.right) else np.array([0.5])
        return Coins(self.prior, np.concatenate([self.right, average])[indices])


class Tally(NamedTuple):
    """What it learns from, expected under the posterior; adds up over parts of the items."""

    true: Floats  # (true class)
    right: Floats  # (annotator)
    annotations: Floats  # (annotator)


@dataclass(frozen=True, kw_only=True)
class OneCoin(EMAggregator[Coins, Tally]):
    """One probability of being right per annotator, fitted with EM.

    Parameters
    ----------
    prevalence
        Whether the share of every class is `estimated`, or `uniform`.
    strength
        How many pseudo-counts every annotator has; with those of `accuracy`, a Beta prior.
    accuracy
        The share of them that is right.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> OneCoin().fit(annotations).quality.round(2).tolist()
    [1.0, 1.0, 0.0]
    """

    learns: ClassVar[type] = Coins

    prevalence: Literal["estimated", "uniform"] = "estimated"
    strength: NonNegative = 0.01
    accuracy: Probability = 0.7

    def log_joint(self, part: Part, params: Coins) -> Floats:
        others = max(part.n_classes - 1, 1)
        right, wrong = np.log(params.right), np.log((1 - params.right) / others)
        joint = part.score((right - wrong)[part.annotator])
        joint += part.by_item(wrong[part.annotator])[:, None]
        joint += logs(params.prior)
        return joint

    def counts(self, part: Part, posterior: Floats) -> Tally:
        right = part.by_annotator(part.given_posterior(posterior))
        return Tally(np.einsum("it->t", posterior), right, part.by_annotator(part.ones))

    def update(self, counts: Tally, last: Coins | None) -> Coins:
        right = counts.right + self.strength * self.accuracy
        wrong = counts.annotations - counts.right + self.strength * (1 - self.accuracy)
        right = share(np.stack([right, np.maximum(wrong, 0.0)]), axis=0)[0]
        flat = self.prevalence == "uniform"
        prior = share(np.ones_like(counts.true) if flat else counts.true)
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

    def chances(self, params: Coins, item: Array, annotator: Array) -> Floats:
        return self.confusion(Coins(params.prior, params.right[annotator]))

    def quality(self, params: Coins, agreement: Floats) -> Floats:
        return params.right

    def n_numbers(self, annotations: Annotations) -> int:
        return 2 * super().n_numbers(annotations)
