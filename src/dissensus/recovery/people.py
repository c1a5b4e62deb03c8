"""Members that stand for people or groups of whom something is known.

Plain members stand for nobody. If it is known of a person s what they are like (a vector g_s of
features: age, party, past answers) and how often they give each label (a marginal m_s), a member
can be tied to that person:

    logits_s(x) = (W + G g_s) hidden(x) + b + B g_s              one head, bent by g_s
    loss = -log mean_s p_s(label | x)                            the aggregated label
           + marginal Σ_s KL(m_s | mean over items of p_s) / S   known marginals
           - own log p_s(what s said of x)                       their labels, where there are some

Without features every person has a direction of their own. The mean over people is that over some
drawn for every step, so a step costs the same however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .._relation import Floats
from ..errors import OptionError
from ..params import Count, NonNegative
from ._base import Kept, People, Shown, Views
from ._networks import Networks, OnVectors, Share, labelled_once

if TYPE_CHECKING:
    from ._nets.people import Bent

__all__ = ["People", "PeopleMembers"]


class Persons(Networks):
    """A network with a member for every person."""

    network: Bent

    def members(self, views: Views) -> Floats:
        return self.network.believe(self.network.see(views))


@dataclass(frozen=True, kw_only=True)
class PeopleMembers(OnVectors):
    """Members tied to people by what is known of them.

    Parameters
    ----------
    marginal
        Weight of matching how often people give each label.
    own
        Weight of the labels that people gave themselves.
    drawn
        People that a step looks at.
    bend
        Weight decay of what sets people apart.
    held_out
        Share of the items that is held out to choose the epoch.
    """

    marginal: NonNegative = 1.0
    own: NonNegative = 1.0
    drawn: Count = 32
    bend: NonNegative = 1e-3
    held_out: Share = 0.1

    def learn(self, views: Views, shown: Shown) -> Persons:
        from ._nets.members import taught
        from ._nets.people import Bent
        from ._nets.sample_weights import alike

        known = shown.people
        if known is None:
            raise OptionError("members for people need people=People(features, marginal, …)")
        assert views.vectors is not None
        features, marginal = known.checked(shown.n_classes, len(views))
        network = Bent(
            features.shape[0], int(np.prod(views.vectors.shape[1:])), shown.n_classes,
            hidden=self.hidden, dropout=self.dropout, input_dropout=self.input_dropout,
            features=features.shape[1], seed=shown.seed,
        )  # fmt: skip
        network.tie(features, marginal, known.annotations, self)
        x = network.see(views)
        taught(
            network, x, labelled_once(shown.label, shown.n_classes),
            alike(1, len(views), self.held_out, shown.seed), seed=shown.seed, progress=shown.progress,
            **self.training(len(views)),
        )  # fmt: skip
        return Persons(network)

    def restore(self, kept: Kept) -> Persons:
        from ._nets.people import Bent

        return Persons(Bent(**kept.notes).load(kept.arrays))
