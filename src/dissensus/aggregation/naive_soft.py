"""Naive soft labels: the vote share of a class is its probability."""

from __future__ import annotations

from dataclasses import dataclass

from .votes import VoteAggregator


@dataclass(frozen=True, kw_only=True)
class NaiveSoft(VoteAggregator):
    """Vote shares; the label is the class with most votes, of tied classes the first.

    Naive soft labels: the vote share of a class is its probability.

        posterior[i, t] = votes for t on item i / votes on item i

    When it fails: As `majority`: annotators are not distinguished. With few votes the shares are
    coarse, and two equal votes out of two are called certain.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaab", "xyzx", ["dog", "dog", "cat", "cat"])
    >>> NaiveSoft().fit(annotations).posterior.round(2).tolist()
    [[0.33, 0.67], [1.0, 0.0]]
    """
