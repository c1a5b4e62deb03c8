"""Naive soft labels: the vote share of a class is its probability."""

from __future__ import annotations

from dataclasses import dataclass

from ._votes import VoteAggregator


@dataclass(frozen=True, kw_only=True)
class NaiveSoft(VoteAggregator):
    """Vote shares; the label is the class with most votes, of tied classes the first.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaab", "xyzx", ["dog", "dog", "cat", "cat"])
    >>> NaiveSoft().fit(annotations).posterior.round(2).tolist()
    [[0.33, 0.67], [1.0, 0.0]]
    """
