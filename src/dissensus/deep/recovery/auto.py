"""The default: a mixture by held-out likelihood, flattened by the number of votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from ...base.pooling import added_weight, mixture_weights
from ...base.time_limit import out_of_time, share_of_time
from ...base.calibration import fit_temperature
from ..nn.features import Features
from ...params import Count, NonNegative
from .attention_heads import AttentionHeads
from .recovery_heads import EnsembleOfHeads
from .baselines import KernelRidge
from .marginal import Marginal
from .method import FitInputs, Mixture, RecoveryMethod, State
from .seedbert import SeedBert

_EPOCHS, _PATIENCE = 12, 2  # of heads, which peak after a few epochs where items are many
_COST = {"marginal": 0, "ridge": 0, "heads": 2, "attention": 3, "tuned": 15}  # relative times
_WITHOUT_MEMBERS = ("marginal",)


@dataclass(frozen=True, kw_only=True)
class Auto(RecoveryMethod):
    """Heads, attention heads and kernel ridge, mixed by their held-out likelihood.

    The default: a mixture by held-out likelihood, flattened by the number of votes.

    Several kinds of members are trained, all from one label per item:

    - n heads on one vector per item, each without another part of the items
      (`heads[sample=folds]`);
    - five heads with their own attention over words or patches, where there are token features;
    - kernel ridge on one-hot labels, the mean of a Gaussian process;
    - on request, copies of a text encoder whose last two layers are tuned, each without another
      part of the items (`seedbert[mode=folds,layers=2]`): much slower, and better on most sets
      measured.

    Each has probabilities of held-out labels: the networks by their folds, kernel ridge in closed
    form. The mixture is the one with the highest likelihood of these labels, with the label
    marginal as one more component, so that uninformative inputs lead to a constant. Tuned copies
    come last, with a temperature of their own, since they are overconfident: their weight is set
    against this mixture, and is zero unless the likelihood of the labels that they hold out rises.
    The temperature is set by the same labels; where the number of votes behind a label is known,
    logits are then divided by the vote-count slope to the power `flatten`.

    Nothing here makes members differ as people do. The result is a well-calibrated probability of
    the majority, a little flatter. On six sets that was as close to people as an oracle that learns
    from all annotations, and still far from people asked again (benchmarks/RECOVERING.md).

        p(x) = softmax(log Σ_m weight[m] p_m(x) / temperature / slope(vote_count)**flatten)

    When it fails: Where inputs say nothing about the class it returns one distribution for all. On
    which items people disagree is predicted poorly, also by oracles on the same features.

    Parameters
    ----------
    n
        Number of heads.
    pools
        Number of attention heads, where there are token features.
    steps
        Minimum number of steps of the heads; attention heads take half as many.
    tuned
        Number of copies of a text encoder whose last two layers are tuned; 0 for none. A copy takes
        about 40 processor seconds for 1000 short texts, 60 for longer ones.
    """

    flatten: NonNegative = 0.375
    n: Count = 10
    pools: Count = 5
    steps: Count = 600
    tuned: Annotated[int, Ge(0)] = 0

    @property
    def uses(self) -> tuple[str, ...]:
        return ("tokens", "raw") if self.tuned else ("tokens",)

    def _parts(self) -> dict[str, RecoveryMethod]:
        return {
            "marginal": Marginal(),
            "ridge": KernelRidge(),
            "heads": EnsembleOfHeads(
                n=self.n, sample="folds", steps=self.steps, epochs=_EPOCHS, patience=_PATIENCE
            ),
            "attention": AttentionHeads(n=self.pools, steps=-(-self.steps // 2)),
            "tuned": SeedBert(
                n=max(self.tuned, 1),
                mode="folds",
                layers=2,
                epochs=5,
                lr=1e-4,
                head_lr=1e-3,
                scheduler="warmup-cosine",
            ),
        }

    def _fit(self, features: Features, context: FitInputs) -> Mixture:
        methods = self._parts()
        if features.tokens is None or np.shape(features.tokens.mask)[1] < 2:
            del methods["attention"]
        if not self.tuned:
            del methods["tuned"]
        parts: dict[str, Any] = {}
        for name, method in methods.items():
            if not _COST[name]:
                parts[name] = method._fit(features, context)
            elif not out_of_time():
                left = [_COST[each] for each in methods if each not in parts]
                with share_of_time(_COST[name] / sum(left)):
                    parts[name] = method._fit(features, context)
        return self._mixed(parts, context)

    def _mixed(self, parts: dict[str, Any], context: FitInputs) -> Mixture:
        """Return the mixture of the parts, with tuned copies only if they pay."""
        tuned = parts.pop("tuned", None)
        held_out = np.stack([part.held_out_proba for part in parts.values()])  # (part, item, class)
        known = ~np.isnan(held_out).any(axis=(0, 2))
        held_out, label = held_out[:, known], context.label[known]
        weight = mixture_weights(held_out[:, np.arange(len(label)), label])
        mean = np.einsum("p,pik->ik", weight, held_out)
        if tuned is not None:
            added = tuned.held_out_proba[known]
            some = np.flatnonzero(~np.isnan(added).any(axis=1))
            likelihood = np.stack([mean[some, label[some]], added[some, label[some]]])
            share = added_weight(likelihood)
            if share:
                parts["tuned"], weight = tuned, np.append((1 - share) * weight, share)
                mean[some] += share * (added[some] - mean[some])
        mixture = Mixture(parts, weight, _WITHOUT_MEMBERS)
        if context.n_classes > 1:
            mixture.temperature = fit_temperature(mean, label)
        return mixture

    def restore(self, state: State) -> Mixture:
        methods = self._parts()
        return Mixture.restored(
            state, lambda name, part: methods[name].restore(part), _WITHOUT_MEMBERS
        )
