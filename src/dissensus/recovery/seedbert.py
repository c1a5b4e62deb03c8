"""SeedBERT: n copies of one pretrained network, tuned alike but for the start of the last layer.

Every member has the same encoder, data, aggregated label, loss and, strict, the same order and the
same dropout; only the weights of its linear head begin at other random numbers. The label is the
vote of the members, and the share of their votes is what the paper reads as the split of people.

What these votes measure is how much the outcome of training depends on its start. Nothing makes it
equal to how people differ, and on every set measured here it is far from it; `mixed` and `proba`
therefore give the mean probability of the members, and `votes` the paper's rule.

    A. Sampath, V. Lin, L.-P. Morency. SeedBERT: recovering annotator rating distributions from an
    aggregated label. 2022.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from .._relation import Floats, Integers
from ..params import Count, Positive
from ._base import Kept, Recovery, RecoveryMethod, Shown, Views
from ._networks import labelled_once
from .measures import best

__all__ = ["SeedBert"]


class Copies(Recovery):
    """What n copies of an encoder have learned beyond it."""

    def __init__(self, learned: list[dict[str, Any]], settings: SeedBert) -> None:
        self.learned = learned  # of every member, the weights that were tuned
        self.settings = settings
        self._last: tuple[Any, Floats] | None = None  # what was asked last: encoding is dear

    def members(self, views: Views) -> Floats:
        from ._nets.copies import believed

        if self._last is None or self._last[0] is not views.raw:
            self._last = views.raw, believed(self.settings, views.raw, self.learned)
        return self._last[1]

    def chosen(self, views: Views) -> Integers:
        """Return the class with most votes; equal ones are decided by the mean probability."""
        members = self.members(views)
        return (best(members).mean(axis=0) + 1e-6 * members.mean(axis=0)).argmax(axis=1)

    def kept(self) -> Kept:
        arrays = {
            f"{member}.{name}": value.numpy()
            for member, weights in enumerate(self.learned)
            for name, value in weights.items()
        }
        return Kept({"n": len(self.learned)}, arrays)


@dataclass(frozen=True, kw_only=True)
class SeedBert(RecoveryMethod):
    """Copies of a pretrained network, tuned alike from other starts of the last layer.

    Parameters
    ----------
    n
        How many copies.
    mode
        `strict`: only the start of the last layer differs; `ensemble`: order and dropout too.
    layers
        How many of the last layers of a text encoder are tuned; the others are asked once and kept,
        which is much faster. `None` tunes all.
    embeddings
        Tune the embeddings of words too, which is half of the weights and much of the time.
    pool
        The vector of a text: the mean over its words, or that of its first one.
    epochs
        How often every item is seen.
    batch
        Items per step.
    lr
        Learning rate.
    precision
        32 or bf16: short floats take less time where the processor has them.
    """

    needs: ClassVar[tuple[str, ...]] = ("raw",)

    n: Count = 10
    mode: Literal["strict", "ensemble"] = "strict"
    layers: Annotated[int, Ge(1)] | None = None
    embeddings: bool = False
    pool: Literal["mean", "first"] = "mean"
    epochs: Count = 3
    batch: Count = 16
    lr: Positive = 5e-6
    precision: Literal["32", "bf16"] = "32"

    def learn(self, views: Views, shown: Shown) -> Copies:
        from ._nets.copies import copies

        annotations = labelled_once(shown.label, shown.n_classes)
        return Copies(copies(self, views.raw, annotations, shown), self)

    def restore(self, kept: Kept) -> Copies:
        import torch

        learned: list[dict[str, Any]] = [{} for _ in range(kept.notes["n"])]
        for name, value in kept.arrays.items():
            member, _, weight = name.partition(".")
            learned[int(member)][weight] = torch.tensor(value)
        return Copies(learned, self)
