"""A classifier per annotator, learned from their labels alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...params import NonNegative, Positive
from .shrunk import Priors
from .linear import Linear


@dataclass(frozen=True, kw_only=True)
class Independent(Linear):
    """A classifier per annotator, learned from their labels alone.

    A classifier per annotator, learned from their labels alone.

    Annotators share nothing: with thousands of labels each this suffices, with forty it is worse
    than the consensus. All have the same ridge, chosen by cross-validation.

        P(k gives · to x) = softmax(W[k] x),   learned from the labels of k alone

    When it fails: With few labels per annotator: with forty each it is worse than the consensus.
    """

    shared: Positive | None = 1.0  # unused: `start` leaves the shared head out
    bias: NonNegative | None = 2.0
    slope: NonNegative | None = 0.0
    metadata: NonNegative | None = 0.0

    def start(self, has_metadata: bool) -> Priors:
        priors = super().start(has_metadata)
        return priors._replace(shared=0.0, level=0.0, own=priors.own or 0.5)

    def grid(self, has_metadata: bool) -> dict[str, Sequence[float]]:
        return {"own": (0.06, 0.12, 0.25, 0.5, 1.0, 2.0)} if self.own is None else {}
