"""Fast Dawid-Skene: every round decides on one class per item, and learns from the decisions.

The model is that of `dawid-skene`. Where EM learns from beliefs, this learns from the best class
alone, which takes far fewer rounds. Its objective is the classification likelihood: the
probability of what was said and of the classes decided on, which never falls. The posterior is
one soft step under what was learned. Decisions remember where they began, so every fit begins with
the votes, whatever start is given. Where classes are equally good the paper takes the first;
here they share the item, unless told otherwise, so that their order does not matter.

    V. B. Sinha, S. Rao, V. N. Balasubramanian. Fast Dawid-Skene: a fast vote aggregation scheme
    for sentiment classification. arXiv:1803.02781, 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from .._relation import Floats
from ..annotations import Part
from ..params import NonNegative
from ._em import harden
from .dawid_skene import Confusion, DawidSkene

__all__ = ["FastDawidSkene"]


@dataclass(frozen=True, kw_only=True)
class FastDawidSkene(DawidSkene):
    """One confusion matrix per annotator, learned from decisions instead of beliefs.

    Parameters
    ----------
    smoothing
        Pseudo-count added to every cell; at 0, maximum likelihood.
    ties
        Classes that are equally good `share` an item, or the `first` of them gets it.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> FastDawidSkene().fit(annotations).labels.tolist()
    ['0', '1']
    """

    own_start: ClassVar[bool] = True

    smoothing: NonNegative = 0.01
    ties: Literal["share", "first"] = "share"

    def weigh(self, joint: Floats, allowed: Floats | float) -> tuple[float, Floats]:
        return harden(joint, allowed, first=self.ties == "first")

    def log_joint(self, part: Part, params: Confusion) -> Floats:
        joint = super().log_joint(part, params)
        joint[part.blank] -= params.log_prior.max()  # nothing said, nothing to explain
        return joint
