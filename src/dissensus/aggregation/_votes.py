"""Rules that look at every item on its own: count, perhaps weigh, decide."""

from __future__ import annotations

from dataclasses import dataclass

from .._relation import Floats, Integers
from ..annotations import Part
from ..result import Aggregation
from ._base import Aggregator, Fit, first_best, share

__all__ = ["VoteAggregator"]


@dataclass(frozen=True, kw_only=True)
class VoteAggregator(Aggregator):
    """A belief in every class from the votes of an item, and a decision."""

    def infer(self, fit: Fit) -> Aggregation:
        """Return shares of votes and what they decide."""
        posterior = fit.over_items(self.believe)
        return self.conclude(fit, posterior, self.decide(fit, posterior))

    def believe(self, part: Part) -> Floats:
        """Return the belief in every class: (item, class)."""
        return share(part.votes)

    def decide(self, fit: Fit, posterior: Floats) -> Integers:
        """Return the class of every item, -1 for none."""
        return first_best(posterior)
