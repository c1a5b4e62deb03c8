"""Weighted vote: the weights of annotators are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..params import table_of
from ..method import FitContext, Fitted
from .votes import WeightedVote


@dataclass(frozen=True, kw_only=True)
class Weighted(WeightedVote):
    """Votes weighted by given skills.

    Weighted vote: the weights of annotators are given.

    The label is the class with most weight. A negative skill counts against the label. Annotators
    without a skill get a default weight. Without any skill, all votes have the same weight.

        label[i] = argmax_t Σ_a skill[a] · 1(annotator a labels item i as t)

    When it fails: Where skills come from another task or another time: the vote is then weighted by
    something that no longer holds, and nothing in the fit can notice.

    Parameters
    ----------
    skills
        `{annotator: skill}`, or a file: a table with the columns annotator and skill, or a JSON
        object.
    default
        Weight of annotators without a skill; by default the mean of the skills.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Weighted(skills={"x": 1, "y": 1, "z": 3}).fit(annotations).labels.tolist()
    ['1', '0']
    """

    side_tables: ClassVar[tuple[str, ...]] = ("skills",)

    skills: Mapping[str, float] | str | None = None
    default: float | None = None

    def estimate_params(self, fit: FitContext) -> Fitted:
        skills = table_of("skills", self.skills)
        mean = sum(skills.values()) / len(skills) if skills else 1.0
        default = mean if self.default is None else self.default
        names = fit.annotations.annotators.tolist()
        weight = np.array([skills.get(name, default) for name in names], dtype=float)
        return Fitted(self.record(fit, weight).weights(weight))
