"""Numeric: annotators measure, each with a bias and a precision of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..base.arrays import Array
from ..params import NonNegative, Positive
from .strategy import Asked, CrowdParameters, Design, Strategy


@dataclass(frozen=True, kw_only=True)
class Numeric(Strategy):
    """Annotators who give numbers.

    Numeric: annotators measure, each with a bias and a precision of their own.

    Annotator a says truth[i] + bias[a] + e / sqrt(precision[a]) about item i, with e from a
    standard normal distribution. Truths and biases are normal around 0; precisions come from a
    Gamma with mean 1 / noise². There are no classes.

        answer[i, a] = truth[i] + bias[a] + e / sqrt(precision[a])

    When it fails: No rounding to tens, no typing errors and no stretched scales, which real numbers
    have.

        V. C. Raykar, S. Yu, L. H. Zhao, G. H. Valadez, C. Florin, L. Bogoni, L. Moy. Learning from
        crowds. Journal of Machine Learning Research 11, 2010.

    Parameters
    ----------
    spread
        Standard deviation of the truths.
    bias
        Standard deviation of the annotators' biases.
    noise
        Standard deviation of an answer by an annotator of mean precision.
    evenness
        Shape of the Gamma distribution; more of it, more alike are the precisions.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate("numeric", n_items=3, n_annotators=2).annotations
    <Numbers: 6 answers by 2 annotators on 3 items; -2.87... to 6.20...>
    """

    numeric: ClassVar[bool] = True

    spread: Positive = 10.0
    bias: NonNegative = 1.0
    noise: Positive = 1.0
    evenness: Positive = 3.0

    def truth(self, design: Design, rng: np.random.Generator) -> Array:
        return rng.normal(0, self.spread, size=design.n_items)

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        bias = rng.normal(0, self.bias, size=design.n_annotators)
        scale = 1 / (self.noise**2 * self.evenness)
        precision = rng.gamma(self.evenness, scale, size=design.n_annotators)
        return CrowdParameters(0, None, {"bias": bias, "precision": precision})

    def answers(self, crowd: CrowdParameters, asked: Asked, rng: np.random.Generator) -> Array:
        bias, precision = crowd.extras["bias"], crowd.extras["precision"]
        error = rng.standard_normal(len(asked.item)) / np.sqrt(precision[asked.annotator])
        return asked.truth + bias[asked.annotator] + error
