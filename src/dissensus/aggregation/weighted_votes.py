"""Wawa, worker agreement with aggregate: votes weighted by agreement with the majority."""

from __future__ import annotations

from dataclasses import dataclass

from ..method import FitContext, Fitted
from .votes import WeightedVote


@dataclass(frozen=True, kw_only=True)
class Wawa(WeightedVote):
    """Votes weighted by agreement with the majority.

    Wawa, worker agreement with aggregate: votes weighted by agreement with the majority.

    The weight of an annotator is the fraction of their labels that equal the majority vote, and the
    label is the class with most weight. Where the majority is tied, agreement counts as a fraction.

        weight[a] = share of a's labels that equal the majority vote
        label[i] = argmax_t Σ_a weight[a] · 1(annotator a labels item i as t)

    When it fails: Where the majority is wrong, it rewards those who are wrong with it. Weights of
    annotators who guess are still 1 / n_classes or more, so spammers are dampened, not removed.

        Appen. Calculating worker agreement with aggregate (Wawa), 2021.
        https://success.appen.com/hc/en-us/articles/202703205

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Wawa().fit(annotations).quality.round(2).tolist()
    [1.0, 1.0, 0.0]
    """

    def estimate_params(self, fit: FitContext) -> Fitted:
        return Fitted(self.record(fit).weights())
