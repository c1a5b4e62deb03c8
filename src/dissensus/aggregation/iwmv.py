"""Iterative weighted majority vote (Li & Yu 2014): votes and weights in turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..base.arrays import Floats
from .votes import IteratedVote, Record


@dataclass(frozen=True, kw_only=True)
class Iwmv(IteratedVote):
    """Votes weighted by agreement with the weighted vote, iterated.

    Iterative weighted majority vote (Li & Yu 2014): votes and weights in turns.

    Every annotator's accuracy is measured against the present vote; their weight is `n_classes *
    accuracy - 1`, zero at chance level and negative below it, a linear approximation of the optimal
    log-odds. A vote of negative weight counts for all other classes. It iterates until the vote
    does not change. With weights of plain accuracy, one iteration is Wawa.

        accuracy[a] = share of a's labels that equal the present vote
        weight[a] = n_classes · accuracy[a] - 1

    When it fails: It confirms its own vote: where most annotators share a bias, iterating drives
    the weights of the others to zero or below. On bluebirds it is right in 72 %, plain votes in 76
    %, Dawid-Skene in 90 %.

        H. Li, B. Yu. Error rate bounds and iterative weighted majority voting for crowdsourcing.
        arXiv:1411.4086, 2014

    Parameters
    ----------
    weights
        From accuracy to weight: `li-yu`, zero at chance level and negative below it, or
        `accuracy` itself.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Iwmv().fit(annotations).params.weight.tolist()
    [1.0, 1.0, -1.0]
    """

    weights: Literal["li-yu", "accuracy"] = "li-yu"

    def weight(self, record: Record) -> Floats:
        if self.weights == "accuracy":
            return record.accuracy
        return record.n_classes * record.accuracy - 1

    def objective(self, record: Record) -> Floats:
        half = record.right * record.accuracy / 2
        return half if self.weights == "accuracy" else record.n_classes * half - record.right
