"""Weighted vote: what every annotator weighs is known beforehand.

The label is the class with most weight. Skills come from a table, or from Python with
`Weighted.of({"ann": 0.9})`; a negative one speaks against the label. Annotators without a skill
get a default weight. Where no skill is given at all, all weigh alike.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._names import as_names
from ..errors import MethodError
from ._base import Fit
from ._votes import Found, WeightedVote, Weights

__all__ = ["Weighted"]


@dataclass(frozen=True, kw_only=True)
class Weighted(WeightedVote):
    """Votes weighted by given skills.

    Parameters
    ----------
    file
        A table with the columns annotator and skill, or a JSON object `{annotator: skill}`.
    skills
        Skills as the text of such a JSON object; they overrule the file.
    default
        Weight of annotators without a skill; by default the mean of the skills.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> Weighted.of({"x": 1, "y": 1, "z": 3}).fit(annotations).labels.tolist()
    ['1', '0']
    """

    file: str | None = None
    skills: str | None = None
    default: float | None = None

    @classmethod
    def of(cls, skills: Mapping[Any, float], *, default: float | None = None) -> Self:
        """Return a vote with these skills, `{annotator: skill}`."""
        names = as_names(skills).tolist()
        values = [float(skill) for skill in skills.values()]
        return cls(skills=json.dumps(dict(zip(names, values, strict=True))), default=default)

    def weigh(self, fit: Fit) -> Found:
        given = self._given()
        mean = sum(given.values()) / len(given) if given else 1.0
        others = mean if self.default is None else self.default
        names = fit.annotations.annotators.tolist()
        weight = np.array([given.get(name, others) for name in names], dtype=float)
        record = self.record(fit, weight)
        return Found(Weights(weight, record.average_others(record.accuracy)))

    def _given(self) -> dict[str, float]:
        """Return the skills, by annotator."""
        from ..readers.side_tables import read_skills

        found = read_skills(self.file) if self.file else {}
        return found | (_parsed(self.skills) if self.skills else {})


def _parsed(text: str) -> dict[str, float]:
    try:
        found = {name: float(skill) for name, skill in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        found = {"": math.nan}
    if not all(map(math.isfinite, found.values())):
        raise MethodError(f'skills = {text!r}, but it must look like {{"annotator": 0.9}}')
    return found
