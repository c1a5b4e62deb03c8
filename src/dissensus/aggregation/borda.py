"""Borda's count: the mean share of the other things that a thing was ranked above; ties half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..answers.rankings import Rankings
from ..consensus_base import ConsensusContext, ConsensusMethod
from .rankings import rankings_result
from .aggregation import Consensus


@dataclass(frozen=True, kw_only=True)
class Borda(ConsensusMethod):
    """The mean share of the other things that a thing was ranked above; ties count half.

    Borda's count: the mean share of the other things that a thing was ranked above; ties half.

        score[thing] = mean share of the other things it is ranked above

    When it fails: Where things are not compared with the same others: one that met only weak rivals
    scores high. Annotators are not distinguished.
    """

    def infer(self, fit: ConsensusContext) -> Consensus:
        answers: Rankings = fit.answers
        pairs, n = answers.pairs(), answers.n_things
        won = np.where(pairs.outcome == 2, 0.5, pairs.outcome == 0)
        above = np.bincount(pairs.left, won, n) + np.bincount(pairs.right, 1 - won, n)
        asked = np.bincount(pairs.left, minlength=n) + np.bincount(pairs.right, minlength=n)
        with np.errstate(invalid="ignore", divide="ignore"):
            score = np.where(asked > 0, above / asked, 0.5)
            deviation = np.sqrt(np.maximum(score * (1 - score), 0.25 / (asked + 1)) / (asked + 1))
        return rankings_result(self, fit, score, deviation, {})
