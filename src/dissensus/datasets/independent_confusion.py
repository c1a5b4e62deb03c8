"""Independent confusion: every annotator has a random confusion matrix, and is mostly right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Floats
from .strategy import CrowdParameters, Design, Strategy, dominant


@dataclass(frozen=True, kw_only=True)
class IndependentConfusion(Strategy):
    """A random confusion matrix per annotator, with the largest probability for the truth.

    Independent confusion: every annotator has a random confusion matrix, and is mostly right.

    The rows of a matrix are uniform on the simplex. In each, the diagonal entry is then swapped
    with the largest, so that no wrong class is more probable than the true one. On average an
    annotator is right with probability (1 + 1/2 + … + 1/K) / K.

        confusion[a, t, ·] ~ Dirichlet(1, …, 1), largest entry swapped with [t]

    When it fails: Errors are independent between annotators, which flatters Dawid-Skene and its
    family.

        A. P. Dawid, A. M. Skene. Maximum likelihood estimation of observer error-rates using the
        EM algorithm. Applied Statistics 28(1), 1979. doi:10.2307/2346806

        T. Lefort, B. Charlier, A. Joly, J. Salmon. Peerannot: classification for crowdsourced image
        datasets with Python. Computo, 2024. doi:10.57750/qmaz-gr91

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate("independent-confusion", n_annotators=2, n_classes=3)
    >>> confusion = drawn.crowd.confusion  # (annotator, true class, given class)
    >>> bool((confusion.argmax(axis=2) == [0, 1, 2]).all())
    True
    """

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        confusion = uniform_matrices(design.n_annotators, design.n_classes, rng)
        return CrowdParameters(design.n_classes, confusion, {})


def uniform_matrices(count: int, n_classes: int, rng: np.random.Generator) -> Floats:
    """Return matrices with rows uniform on the simplex, the largest entry on the diagonal."""
    return dominant(rng.dirichlet(np.ones(n_classes), size=(count, n_classes)))
