"""Ordinal: classes stand in an order, and near classes are confused more often than far ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from ..params import NonNegative, Positive
from .strategy import CrowdParameters, Design, Strategy


@dataclass(frozen=True, kw_only=True)
class Ordinal(Strategy):
    """Annotators who miss by a little more often than by a lot.

    Ordinal: classes stand in an order, and near classes are confused more often than far ones.

    Annotator a, seeing an item of class t, says g with a probability proportional to
    exp(-sharpness[a] · |t + shift[a] - g|). A positive shift is somebody who rates too high. Shifts
    are drawn from a normal distribution around 0, sharpness from a Gamma with shape 4.

        P(label g of a | t) ∝ exp(-sharpness[a] · |t + shift[a] - g|)

    When it fails: The steps of the scale are equally wide for everybody; real raters avoid ends or
    use three of five steps.

        D. Zhou, Q. Liu, J. C. Platt, C. Meek. Aggregating ordinal labels from crowds by minimax
        conditional entropy. Proceedings of ICML, 2014. (The idea that confusion follows the order;
        the formula is ours.)

    Parameters
    ----------
    sharpness
        Mean sharpness of the annotators; towards 0 they guess.
    bias
        Standard deviation of the annotators' shifts, in classes.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate(Ordinal(bias=0), n_classes=4)
    >>> row = drawn.crowd.confusion[0, 0]  # (given class)
    >>> bool((np.diff(row) < 0).all())
    True
    """

    sharpness: Positive = 2.0
    bias: NonNegative = 0.5

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        sharpness = rng.gamma(4, self.sharpness / 4, size=design.n_annotators)
        shift = rng.normal(0, self.bias, size=design.n_annotators)
        true, given = np.ogrid[: design.n_classes, : design.n_classes]
        distance = abs(true + shift[:, None, None] - given)  # (annotator, true, given)
        confusion = softmax(-sharpness[:, None, None] * distance, axis=2)
        return CrowdParameters(
            design.n_classes, confusion, {"sharpness": sharpness, "shift": shift}
        )
