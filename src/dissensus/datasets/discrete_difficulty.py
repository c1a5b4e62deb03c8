"""Discrete difficulty: items are easy, hard or random; annotators are good or bad."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Array
from ..params import NonNegative, Probability
from .strategy import Asked, CrowdParameters, Design, Strategy, dominant


@dataclass(frozen=True, kw_only=True)
class DiscreteDifficulty(Strategy):
    """Items of three difficulties, annotators of two abilities.

    Discrete difficulty: items are easy, hard or random; annotators are good or bad.

    Everybody is right on an easy item, and everybody guesses on a random one. On a hard item
    answers come from confusion matrices. The rows of good annotators are drawn from a
    Dirichlet(0.2), with the largest entry brought to the diagonal. Those of bad annotators are
    drawn from a Dirichlet(5) and left as they are, close to a guess. Good annotators come first.

        P(label g of a on i | t) = identity, confusion[a] or 1 / n_classes by difficulty[i]

    When it fails: Difficulty has three values and is the same for everybody; real items are hard
    for some.

        J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma, J. Movellan. Whose vote should count more:
        optimal integration of labels from labelers of unknown expertise. Advances in Neural
        Information Processing Systems 22, 2009.

        T. Lefort, B. Charlier, A. Joly, J. Salmon. Peerannot: classification for crowdsourced image
        datasets with Python. Computo, 2024. doi:10.57750/qmaz-gr91

    Parameters
    ----------
    ratio
        Share of good annotators; their number is rounded down.
    ratio_diff
        How many easy items come on one hard item.
    random
        Share of random items.

    Examples
    --------
    >>> from dissensus import simulate
    >>> simulate(DiscreteDifficulty(random=0.5), n_items=4).extras["difficulties"].tolist()
    ['easy', 'easy', 'random', 'random']
    """

    ratio: Probability = 0.1
    ratio_diff: NonNegative = 1.0
    random: Probability = 0.0

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        n_classes = design.n_classes
        hard = (1 - self.random) / (self.ratio_diff + 1)
        shares = [self.ratio_diff * hard, hard, self.random]
        difficulty = rng.choice(["easy", "hard", "random"], p=shares, size=design.n_items)
        n_good = int(self.ratio * design.n_annotators)
        n_bad = design.n_annotators - n_good
        good = rng.dirichlet(np.full(n_classes, 0.2), size=(n_good, n_classes))
        bad = rng.dirichlet(np.full(n_classes, 5.0), size=(n_bad, n_classes))
        confusion = np.concatenate([dominant(good), bad])
        return CrowdParameters(n_classes, confusion, {"difficulties": difficulty})

    def answers(self, crowd: CrowdParameters, asked: Asked, rng: np.random.Generator) -> Array:
        difficulty = crowd.extras["difficulties"][asked.item]
        label = asked.truth.copy()
        hard = np.flatnonzero(difficulty == "hard")
        if len(hard):
            label[hard] = super().answers(crowd, Asked(*(part[hard] for part in asked)), rng)
        guessed = np.flatnonzero(difficulty == "random")
        if len(guessed):
            label[guessed] = rng.choice(crowd.n_classes, size=len(guessed))
        return label
