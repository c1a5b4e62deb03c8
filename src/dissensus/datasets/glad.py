"""GLAD: able annotators are right, and easy items are labelled right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ..base.arrays import Floats
from .strategy import Asked, CrowdParameters, Design, Strategy, one_coin


@dataclass(frozen=True, kw_only=True)
class Glad(Strategy):
    """Annotators with abilities and items with difficulties.

    GLAD: able annotators are right, and easy items are labelled right.

    Annotator a is right about item i with probability sigmoid(ability[a] · exp(log_easiness[i])).
    Otherwise all wrong classes are equally probable. Both parameters are drawn from a normal
    distribution around 1 with deviation 1. A negative ability is somebody who is wrong on purpose.

        P(a is right about i) = sigmoid(ability[a] · exp(log_easiness[i]))

    When it fails: Wrong labels are spread evenly, so no two classes are easily mistaken for each
    other.

        J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma, J. Movellan. Whose vote should count more:
        optimal integration of labels from labelers of unknown expertise. Advances in Neural
        Information Processing Systems 22, 2009.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate("glad", n_items=4, n_annotators=2)
    >>> {name: values.shape for name, values in drawn.extras.items()}
    {'ability': (2,), 'log_easiness': (4,)}
    """

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        ability = rng.normal(1, 1, size=design.n_annotators)
        log_easiness = rng.normal(1, 1, size=design.n_items)
        extras = {"ability": ability, "log_easiness": log_easiness}
        return CrowdParameters(design.n_classes, None, extras)

    def probabilities(self, crowd: CrowdParameters, asked: Asked) -> Floats:
        easiness = np.exp(crowd.extras["log_easiness"][asked.item])
        correct = expit(crowd.extras["ability"][asked.annotator] * easiness)  # (answer)
        return one_coin(correct[:, None], asked.truth[:, None] == np.arange(crowd.n_classes))
