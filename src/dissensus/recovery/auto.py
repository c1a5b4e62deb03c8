"""The default: a mixture by held-out likelihood, flattened by the number of votes.

Three kinds of members are trained, all from one label per item:

- n heads on one vector per item, each without another part of the items (`heads[sample=folds]`);
- five heads with their own attention over words or patches, where there are token features;
- kernel ridge on one-hot labels, the mean of a Gaussian process.

Each has probabilities of held-out labels: the networks by their folds, kernel ridge in closed form.
The mixture is the one with the highest likelihood of these labels (EM), with the label marginal as
one more component, so that uninformative inputs lead to a constant. The temperature is set by the
same labels; where the number of votes behind a label is known, logits are then divided by the
vote-count slope to the power `flatten`.

Nothing here makes members differ as people do. The result is a well-calibrated probability of the
majority, a little flatter. On six sets that was as close to people as an oracle that learns from
all annotations, and still far from people asked again (benchmarks/RECOVERING.md).

    p(x) = softmax(log Σ_m weight[m] p_m(x) / temperature / slope(vote_count)**flatten)

When it fails: Where inputs say nothing about the class it returns one distribution for all. On
which items people disagree is predicted poorly, also by oracles on the same features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._pooling import mixture_weights
from .._time_limit import out_of_time, share_of_time
from ..calibration import fit_temperature
from ..nn.features import Features
from ..params import Count, NonNegative
from .attention_heads import AttentionHeads
from .heads import EnsembleOfHeads
from .kernel_ridge import KernelRidge
from .marginal import Marginal
from .method import FitInputs, Mixture, RecoveryMethod, State

_EPOCHS, _PATIENCE = 12, 4  # of heads, which peak after a few epochs where items are many
_HEADS = 0.4  # of the time that is left, where attention heads follow
_WITHOUT_MEMBERS = ("marginal",)


@dataclass(frozen=True, kw_only=True)
class Auto(RecoveryMethod):
    """Heads, attention heads and kernel ridge, mixed by their held-out likelihood.

    Parameters
    ----------
    n
        Number of heads.
    pools
        Number of attention heads, where there are token features.
    steps
        Minimum number of steps of the heads; attention heads take half as many.
    """

    uses: ClassVar[tuple[str, ...]] = ("tokens",)

    flatten: NonNegative = 0.375
    n: Count = 10
    pools: Count = 5
    steps: Count = 600

    def _parts(self) -> dict[str, RecoveryMethod]:
        return {
            "marginal": Marginal(),
            "ridge": KernelRidge(),
            "heads": EnsembleOfHeads(
                n=self.n, sample="folds", steps=self.steps, epochs=_EPOCHS, patience=_PATIENCE
            ),
            "attention": AttentionHeads(n=self.pools, steps=-(-self.steps // 2)),
        }

    def _fit(self, features: Features, context: FitInputs) -> Mixture:
        methods = self._parts()
        if features.tokens is None or np.shape(features.tokens.mask)[1] < 2:
            del methods["attention"]
        parts: dict[str, Any] = {}
        for name, method in methods.items():
            if name in ("marginal", "ridge") or not out_of_time():
                with share_of_time(_HEADS if name == "heads" and "attention" in methods else 1.0):
                    parts[name] = method._fit(features, context)
        held_out = np.stack([part.held_out_proba for part in parts.values()])  # (part, item, class)
        known = ~np.isnan(held_out).any(axis=(0, 2))
        held_out, label = held_out[:, known], context.label[known]
        weight = mixture_weights(held_out[:, np.arange(len(label)), label])
        mixture = Mixture(parts, weight, _WITHOUT_MEMBERS)
        if context.n_classes > 1:
            mean = np.einsum("p,pik->ik", weight, held_out)
            mixture.temperature = fit_temperature(mean, label)
        return mixture

    def restore(self, state: State) -> Mixture:
        methods = self._parts()
        weight = state.notes["weight"]
        parts = {name: methods[name].restore(state.part(name)) for name in weight}
        return Mixture(parts, np.array(list(weight.values())), _WITHOUT_MEMBERS)
