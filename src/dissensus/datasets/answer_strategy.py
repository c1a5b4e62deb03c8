"""The interface of strategies whose answers are sets, rankings, marks or masks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..base.names import numbered
from ..base.arrays import Array, Integers
from ..answers import Answers
from ..errors import OptionError
from ..params import Settings


class Drawn(NamedTuple):
    """Answers, the truth, and what was drawn of annotators."""

    answers: Answers
    truth: Answers | dict[str, float]  # one answer per item, or the scores of things
    crowd: dict[str, Array]


class Assigned(NamedTuple):
    """Who is asked about what: (answer), sorted by item."""

    item: Integers
    annotator: Integers
    n_items: int
    n_annotators: int

    @property
    def names(self) -> dict[str, Any]:
        """The names of items and annotators."""
        return {"items": numbered(self.n_items), "annotators": numbered(self.n_annotators)}


@dataclass(frozen=True, kw_only=True)
class AnswerStrategy(Settings, ABC):
    """A crowd that answers questions of some kind."""

    @abstractmethod
    def draw(self, asked: Assigned, rng: np.random.Generator) -> Drawn:
        """Return answers of all who are asked, and the truth."""


def assign(
    n_items: int, n_annotators: int, feedback: int | None, rng: np.random.Generator
) -> Assigned:
    """Return who is asked: `feedback` annotators drawn for every item, or all of them."""
    for name, value in (("n_items", n_items), ("n_annotators", n_annotators)):
        if value < 1:
            raise OptionError(f"{name} = {value}, but it must be at least 1")
    each = n_annotators if feedback is None else min(feedback, n_annotators)
    order = rng.random((n_items, n_annotators)).argsort(axis=1)[:, :each]
    annotator = np.sort(order, axis=1).ravel()
    return Assigned(np.repeat(np.arange(n_items), each), annotator, n_items, n_annotators)
