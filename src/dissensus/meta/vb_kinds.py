"""Variational Bayes on embeddings with annotators of a few kinds.

Classes as in `vb-full`, annotators as in `em-kinds`: nothing is fixed to a point.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..params import Positive
from .em import Em, EmRule
from .em_kinds import Kinds
from .vb_full import VariationalGaussians

__all__ = ["VbKinds"]


@dataclass(frozen=True, kw_only=True)
class VbKinds(EmRule):
    """Variational Bayes on embeddings, annotators of a few kinds."""

    steps: int = 5
    tau: Positive = 0.1

    def build(self, width: int, n_classes: int) -> Em:
        return Em(VariationalGaussians(self.b, self.tau), Kinds(), self)
