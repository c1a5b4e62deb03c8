"""The default: what foresees labels best, mixed, and flattened by how many people were asked.

Three kinds of members are trained, none of which sees more than one label per item:

- n heads over one vector per item, each without another part of the items (`bagged-heads`);
- five heads with an attention of their own over words or patches, where there are any;
- kernel ridge on one-hot labels, the mean of a Gaussian process.

All of them tell the probability of the labels of items that they have not learned: networks by the
folds they leave out, kernel ridge in closed form. The mixture is that of most likelihood of these
labels (EM), with the shares of all labels as one more component, so that inputs which tell nothing
end in a constant. Its temperature is set by the same labels; where it is known how many people
stand behind a label, logits are then divided by the vote-count slope to the power `flatten`.

Nothing here makes members differ as people do. What it gives is a well-calibrated probability of
the majority, a little flatter. On six sets that was as near to people as an oracle that learns from
everybody's labels, and still far from people asked again (benchmarks/RECOVERING.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._relation import Floats, Integers
from ..params import Count, NonNegative
from ._base import Kept, Recovery, RecoveryMethod, Shown, Views
from ._flattening import likeliest_temperature
from .attention_heads import AttentionHeads
from .bagged_heads import BaggedHeads
from .kernel_ridge import KernelRidge
from .marginal import Constant, Marginal

__all__ = ["Auto", "Mixture", "mixing_weights"]

_PRIOR = 1.0  # items that speak for every part beforehand


class Mixture(Recovery):
    """Several recoveries and how much each counts."""

    def __init__(self, parts: dict[str, Recovery], weight: Floats) -> None:
        self.parts = parts
        self.weight = weight  # (part)

    def members(self, views: Views) -> Floats:
        return np.concatenate([part.members(views) for part in self._voting()])

    def mixed(self, views: Views) -> Floats:
        each = np.stack([part.mixed(views) for part in self.parts.values()])
        return np.einsum("p,pik->ik", self.weight, each)

    def kept(self) -> Kept:
        told = {name: part.kept() for name, part in self.parts.items()}
        notes = {"parts": {name: one.notes for name, one in told.items()}}
        arrays = {
            f"{name}.{key}": value
            for name, one in told.items()
            for key, value in one.arrays.items()
        }
        return Kept(notes | {"weight": self.weight.tolist()}, arrays)

    def _voting(self) -> list[Recovery]:
        """Return the parts that look at the item; the constant has no vote."""
        return [part for part in self.parts.values() if not isinstance(part, Constant)]


@dataclass(frozen=True, kw_only=True)
class Auto(RecoveryMethod):
    """Heads, attention heads and kernel ridge, mixed by how well they foresee labels.

    Parameters
    ----------
    n
        How many heads.
    pools
        How many attention heads, where inputs have places.
    steps
        Fewest steps of the heads, and twice as many as the fewest of attention heads.
    """

    likes: ClassVar[tuple[str, ...]] = ("places",)

    flatten: NonNegative = 0.375
    n: Count = 10
    pools: Count = 5
    steps: Count = 600

    def learn(self, views: Views, shown: Shown) -> Mixture:
        parts: dict[str, Recovery] = {}
        left_out: dict[str, Floats] = {}
        for name, method in self._methods(views).items():
            found: Any = method.learn(views, shown)
            parts[name] = found
            if isinstance(found, Constant):
                left_out[name] = np.broadcast_to(found.share, (len(views), shown.n_classes))
            else:
                left_out[name] = found.left_out
        posterior = np.stack(list(left_out.values()))  # (part, item, class)
        known = ~np.isnan(posterior).any(axis=(0, 2))
        posterior, label = posterior[:, known], shown.label[known]
        weight = mixing_weights(posterior, label)
        made = Mixture(parts, weight)
        if shown.n_classes > 1:
            made.temperature = likeliest_temperature(
                np.einsum("p,pik->ik", weight, posterior), label
            )
        return made

    def restore(self, kept: Kept) -> Mixture:
        methods = self._all()
        parts: dict[str, Recovery] = {}
        for name, notes in kept.notes["parts"].items():
            mine = {
                key.partition(".")[2]: value
                for key, value in kept.arrays.items()
                if key.partition(".")[0] == name
            }
            parts[name] = methods[name].restore(Kept(notes, mine))
        return Mixture(parts, np.array(kept.notes["weight"]))

    def _all(self) -> dict[str, RecoveryMethod]:
        return {
            "heads": BaggedHeads(n=self.n, folds=True, steps=self.steps),
            "attention": AttentionHeads(n=self.pools, steps=-(-self.steps // 2)),
            "ridge": KernelRidge(),
            "marginal": Marginal(),
        }

    def _methods(self, views: Views) -> dict[str, RecoveryMethod]:
        found = self._all()
        if views.positions is None or views.positions.mask.shape[1] < 2:
            del found["attention"]
        return found


def mixing_weights(posterior: Floats, label: Integers, rounds: int = 200) -> Floats:
    """Return the weights under which the labels are likeliest: (part).

    Parameters
    ----------
    posterior
        What every part says of items whose label it has not seen: (part, item, class).
    label
        Their labels: (item).
    rounds
        Of EM.
    """
    chance = posterior[:, np.arange(len(label)), label]  # (part, item)
    weight = np.full(len(chance), 1 / len(chance))
    for _ in range(rounds):
        resp = weight[:, None] * chance
        resp /= np.maximum(resp.sum(axis=0), 1e-300)
        weight = resp.sum(axis=1) + _PRIOR
        weight /= weight.sum()
    return weight
