"""Peer grading: annotators are authors of the items, and good authors may grade more reliably."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..base.arrays import Array, Floats
from ..params import NonNegative, Positive
from .strategy import Asked, CrowdParameters, Design, Strategy


@dataclass(frozen=True, kw_only=True)
class PeerGrading(Strategy):
    """Graders who are authors, too.

    Peer grading: annotators are authors of the items, and good authors may grade more reliably.

    Item i is by annotator i, counted again from 0 where items are more. Annotator a grades item i
    with truth[i] + bias[a] + e / sqrt(precision[a]), e from a standard normal distribution, and own
    items `inflation` higher. log precision[a] rises by `slope` for every standard deviation of the
    mean truth of a's own items; around that, precisions come from a Gamma distribution. There are
    no classes:

        answer[i, a] = truth[i] + bias[a] + e / sqrt(precision[a])

    When it fails: Real graders also agree beforehand, copy each other, or grade a rival down, which
    this crowd never does.

        C. Piech, J. Huang, Z. Chen, C. Do, A. Ng, D. Koller. Tuned models of peer assessment in
        MOOCs.
        International Conference on Educational Data Mining, 2013.

    Parameters
    ----------
    spread
        Standard deviation of the true grades, around 70.
    bias
        Standard deviation of the graders' biases.
    noise
        Standard deviation of an answer by a grader of mean precision with an average grade.
    evenness
        Shape of the Gamma distribution; more of it, more alike are the precisions.
    slope
        What a standard deviation of the own grade adds to the log precision.
    inflation
        How much higher own items are graded.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate("peer-grading", n_items=3, n_annotators=3).annotations
    <Numbers: 9 answers by 3 annotators on 3 items; 47.8... to 90.2...>
    """

    numeric: ClassVar[bool] = True

    spread: Positive = 10.0
    bias: NonNegative = 4.0
    noise: Positive = 8.0
    evenness: Positive = 3.0
    slope: float = 0.5
    inflation: float = 15.0

    def truth(self, design: Design, rng: np.random.Generator) -> Array:
        return 70 + self.spread * _merit(design)

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        size = design.n_annotators
        author = np.arange(design.n_items) % size
        items = np.maximum(np.bincount(author, minlength=size), 1)
        own = np.bincount(author, _merit(design), minlength=size) / items
        level = np.exp(self.slope * own) / (self.noise**2 * self.evenness)
        bias = rng.normal(0, self.bias, size=size)
        precision = rng.gamma(self.evenness, level)
        return CrowdParameters(0, None, {"bias": bias, "precision": precision, "authors": author})

    def answers(self, crowd: CrowdParameters, asked: Asked, rng: np.random.Generator) -> Array:
        bias, precision = crowd.extras["bias"], crowd.extras["precision"]
        error = rng.standard_normal(len(asked.item)) / np.sqrt(precision[asked.annotator])
        own = crowd.extras["authors"][asked.item] == asked.annotator
        return asked.truth + bias[asked.annotator] + error + self.inflation * own


def _merit(design: Design) -> Floats:
    """Return the true grades, standardized: drawn apart, because graders depend on them."""
    return np.random.default_rng([design.seed, 1]).standard_normal(design.n_items)
