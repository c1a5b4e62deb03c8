"""Monte-Carlo dropout: members are passes of one network with dropout on."""

from __future__ import annotations

from dataclasses import dataclass

from ...base.arrays import Floats
from ..nn.features import Features
from ...params import Count
from .heads import Networks
from .members import Members
from .single import Single


class Sampled(Networks):
    """A network whose members are Monte-Carlo passes."""

    def __init__(self, network: Members, held_out_proba: Floats | None, passes: int) -> None:
        super().__init__(network, held_out_proba)
        self.passes = passes

    def members(self, features: Features) -> Floats:
        return self.network.sample_proba(self.network.inputs_from(features), self.passes)


@dataclass(frozen=True, kw_only=True)
class McDropout(Single):
    """The mean of one network over Monte-Carlo dropout.

    Monte-Carlo dropout: members are passes of one network with dropout on.

        p(x) = mean over passes s of p(x; dropout mask s)

    When it fails: The spread is set by the dropout rate, which is a choice and not learned from
    annotators.

        Y. Gal, Z. Ghahramani. Dropout as a Bayesian approximation: representing model uncertainty
        in deep learning. ICML 2016.

    Parameters
    ----------
    passes
        Number of passes.
    """

    passes: Count = 50

    def _fitted(self, network: Members, held_out_proba: Floats | None = None) -> Sampled:
        return Sampled(network, held_out_proba, self.passes)
