"""The method for texts: ROVER for transcripts, the medoid for translations."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..params import Probability
from ..consensus_base import ConsensusContext, ConsensusMethod
from .medoid import Medoid
from .aggregation import Consensus
from .rover import Rover

_SAMPLE = 20_000  # pairs of answers


@dataclass(frozen=True, kw_only=True)
class Auto(ConsensusMethod):
    """ROVER where texts are alike, otherwise the medoid.

    The method for texts: ROVER for transcripts, the medoid for translations.

    Words of transcripts are the same or wrong, so they can be mixed. Where answers differ by half
    of their words and more they are phrased differently, and a mixture would be nobody's sentence.

        rover if answers differ by less than half of their words, else medoid

    When it fails: Texts between transcript and translation, such as free paraphrases with common
    phrases: the share of different words decides, and may do so wrongly for a small set.

    Parameters
    ----------
    apart
        The mean distance of two answers to an item from which the medoid is used.
    """

    apart: Probability = 0.5

    def infer(self, fit: ConsensusContext) -> Consensus:
        first, second = fit.answers.within_item_pairs()
        step = max(1, len(first) // _SAMPLE)
        distance = fit.answers.distance(first[::step], second[::step])
        mean = float(np.mean(distance)) if len(distance) else 0.0
        method = Medoid() if mean >= self.apart else Rover()
        name = "the answer closest to the others" if mean >= self.apart else "a vote word by word"
        note = f"Two answers differ in {mean:.0%} of their words on average, so {name} is taken."
        result = method.infer(fit)
        return replace(result, notes=(note.replace("%", " %"), *result.notes))
