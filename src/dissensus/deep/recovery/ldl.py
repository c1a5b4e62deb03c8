"""Label distribution learning: an oracle that learns from all annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..nn.features import Features
from ...params import Count
from .heads import HeadMethod, Networks
from .members import bootstrap_weights, shared_split
from .method import FitInputs


@dataclass(frozen=True, kw_only=True)
class Ldl(HeadMethod):
    """Networks that learn the label shares of the annotators: an oracle.

    Label distribution learning: an oracle that learns from all annotations.

        loss = -Σ_k q_ik log p_k(x_i),   q_i the label shares of the annotators of item i

    It shows how well distributions can be predicted from these inputs by a model that learns from
    them: an upper reference for methods that see one label per item.

    When it fails: It needs all annotations, so it is a reference and not a method for one label per
    item. With two or three votes the shares it learns are noise.

        X. Geng. Label distribution learning. IEEE TKDE 28(7), 2016.

    Parameters
    ----------
    n
        Number of networks, each on its own bootstrap sample of the items.
    """

    oracle: ClassVar[bool] = True

    n: Count = 10

    def _fit(self, features: Features, context: FitInputs) -> Networks:
        weight = bootstrap_weights(self.n, len(features), context.seed)
        if self.n == 1:
            weight = shared_split(1, len(features), 0.1, context.seed)
        network = self._heads(features, context, self.n)
        return self._train(network, features, context, weight, annotations=context.annotations)
