"""Hammers and spammers: some annotators are always right, the others guess."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..params import Probability
from .strategy import CrowdParameters, Design, Strategy


@dataclass(frozen=True, kw_only=True)
class HammerSpammer(Strategy):
    """Annotators who are always right, and annotators who guess.

    Hammers and spammers: some annotators are always right, the others guess.

    A hammer's confusion matrix is the identity. A spammer gives every class with the same
    probability, whatever the truth. Spammers come last.

        confusion[a] = identity for hammers, 1 / n_classes everywhere for spammers

    When it fails: Real annotators are neither: methods that look perfect here, such as `mace`, need
    not be so on real data.

        D. R. Karger, S. Oh, D. Shah. Iterative learning for reliable crowdsourcing systems.
        Advances in Neural Information Processing Systems 24, 2011.

    Parameters
    ----------
    ratio
        Share of spammers; their number is rounded down.

    Examples
    --------
    >>> from dissensus import simulate
    >>> drawn = simulate(HammerSpammer(ratio=0.5), n_annotators=2)
    >>> drawn.crowd.confusion.tolist()
    [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]]
    """

    ratio: Probability = 0.1

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        n_hammers = design.n_annotators - int(self.ratio * design.n_annotators)
        shape = (design.n_annotators, design.n_classes, design.n_classes)
        confusion = np.full(shape, 1 / design.n_classes)
        confusion[:n_hammers] = np.eye(design.n_classes)
        return CrowdParameters(design.n_classes, confusion, {})
