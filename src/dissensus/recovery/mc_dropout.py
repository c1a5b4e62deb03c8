"""One network asked several times, each time without another part of its numbers.

Y. Gal, Z. Ghahramani. Dropout as a Bayesian approximation: representing model uncertainty in
deep learning. ICML 2016.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._relation import Floats
from ..params import Count
from ._base import Kept, Shown, Views
from ._networks import Networks
from .single import Single

__all__ = ["McDropout"]


class Passes(Networks):
    """A network and how often it is asked."""

    passes: int
    seed: int

    def members(self, views: Views) -> Floats:
        from ._nets.monte_carlo import drawn

        return drawn(self.network, self.network.see(views), self.passes, self.seed)

    def kept(self) -> Kept:
        notes, arrays = super().kept()
        return Kept({"shape": notes, "passes": self.passes, "seed": self.seed}, arrays)


@dataclass(frozen=True, kw_only=True)
class McDropout(Single):
    """The mean of one network under dropout.

    Parameters
    ----------
    passes
        How often it is asked.
    """

    passes: Count = 50

    def learn(self, views: Views, shown: Shown) -> Passes:
        return self._asked(super().learn(views, shown), shown.seed)

    def restore(self, kept: Kept) -> Passes:
        found = super().restore(Kept(kept.notes["shape"], kept.arrays))
        assert isinstance(found, Networks)
        return self._asked(found, kept.notes["seed"])

    def _asked(self, found: Networks, seed: int) -> Passes:
        made = Passes(found.network)
        made.passes, made.seed, made.temperature = self.passes, seed, found.temperature
        return made
