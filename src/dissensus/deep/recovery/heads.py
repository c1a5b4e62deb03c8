"""Heads: networks with at most one hidden layer on frozen features, and methods made of them.

The methods differ in what makes their members differ: nothing (one network), Monte-Carlo dropout,
draws of all weights, independent trainings, the items they learn from, or an attention of their
own over words or patches. `NetworkMethod` trains the members of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from annotated_types import Ge, Interval
from torch import Tensor, nn
from torch.nn.functional import softplus

from ...answers.annotations import Annotations, Floats
from ...params import Count, NonNegative, Positive
from ..nn import Batch
from ..nn.batches import Source, chunks
from ..nn.estimator import standardization
from ..nn.features import Features, TokenFeatures
from ..nn.runs import load_network
from .base import FitInputs, Mixture, Recovery, RecoveryMethod, State
from .members import (
    Members,
    bootstrap_weights,
    fold_weights,
    initial_weights,
    shared_split,
    train_members,
)

Fraction = Annotated[float, Interval(ge=0, lt=1)]

_BATCH = 64
_STANDARDIZED = 2048  # items by which token features are standardized
_MASKED = -1e9
_INITIAL_RHO = -5.0


class Heads(Members):
    """n networks with one hidden layer, or none, on the same vectors.

    Parameters
    ----------
    n
        Number of networks.
    width, n_classes
        Number of features and of classes.
    hidden
        Width of the hidden layer; 0 for none.
    dropout, input_dropout
        Dropout rates of the hidden layer and of the inputs.
    shared_dropout
        Use the same dropout mask for all members.
    seed
        Random seed of the initial weights.
    """

    def __init__(
        self, n: int, width: int, n_classes: int, *, hidden: int, seed: int = 0, **settings: Any
    ) -> None:
        defaults = {"dropout": 0.0, "input_dropout": 0.0, "shared_dropout": False}
        super().__init__(n, width, n_classes, hidden=hidden, seed=seed, **defaults | settings)
        if hidden:
            self.first = initial_weights(n, width, hidden, seed=seed)
            self.first_bias = nn.Parameter(torch.zeros(n, 1, hidden))
        self.last = initial_weights(n, hidden or width, n_classes, seed=seed)
        self.bias = nn.Parameter(torch.zeros(n, 1, n_classes))

    def inputs_from(self, features: Features) -> Tensor:
        return torch.tensor(features.vectors).to(self.mean)

    def standardize(self, x: Tensor | Source) -> None:
        assert isinstance(x, Tensor)
        self.mean, self.scale = standardization(x)

    def log_proba(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, self.hidden(x), self.last).log_softmax(dim=-1)

    def hidden(self, x: Tensor) -> Tensor:
        """Return the input of the last layer: (member, item, hidden)."""
        shared = self.settings["shared_dropout"]
        x = ((x - self.mean) * self.scale).expand(self.n, -1, -1)
        x = self.without(x, self.settings["input_dropout"], shared=shared)
        if self.settings["hidden"]:
            x = torch.relu(torch.baddbmm(self.first_bias, x, self.first))
            x = self.without(x, self.settings["dropout"], shared=shared)
        return x


class Networks(Recovery):
    """Trained networks."""

    def __init__(self, network: Members, held_out_proba: Floats | None = None) -> None:
        self.network = network
        self.held_out_proba = held_out_proba  # (item, class): by members that hold the item out

    def members(self, features: Features) -> Floats:
        return self.network.proba(self.network.inputs_from(features))

    def state(self) -> State:
        return State(self.network.settings, self.network.arrays())


@dataclass(frozen=True, kw_only=True)
class NetworkMethod(RecoveryMethod):
    """A method that trains networks.

    Parameters
    ----------
    hidden
        Width of the hidden layer; 0 for none.
    dropout
        Dropout rate of the hidden layer.
    epochs
        Number of epochs. A member with held-out items ends with the weights of its best one.
    steps
        Minimum number of steps: with few items there are more epochs.
    patience
        Epochs without an improvement of the members' mean, after which training stops.
    batch
        Batch size.
    lr
        Learning rate.
    """

    network: ClassVar[type[Members]] = Heads

    hidden: Annotated[int, Ge(0)] = 128
    dropout: Fraction = 0.5
    epochs: Count = 30
    steps: Count = 600
    patience: Count = 8
    batch: Count = 64
    lr: Positive = 1e-3

    def _train(
        self,
        network: Members,
        features: Features,
        context: FitInputs,
        sample_weight: Tensor,
        *,
        annotations: Annotations | None = None,
        soft_labels: Floats | None = None,
    ) -> Networks:
        """Return the trained network."""
        x = network.inputs_from(features)
        annotations = annotations or Annotations.from_labels(context.label, context.n_classes)
        epochs = max(self.epochs, -(-self.steps // -(-len(features) // self.batch)))
        train_members(
            network,
            x,
            annotations,
            sample_weight,
            seed=network.settings["seed"],
            soft_labels=context.soft_labels if soft_labels is None else soft_labels,
            progress=context.progress,
            epochs=epochs,
            patience=-(-self.patience * epochs // self.epochs),  # as long where epochs are short
            batch=self.batch,
            lr=self.lr,
        )
        model = self._fitted(network, network.held_out_proba(x))
        if context.soft_labels is not None:
            model.calibrate(annotations.label, annotations.item)
        return model

    def _fitted(self, network: Members, held_out_proba: Floats | None = None) -> Networks:
        return Networks(network, held_out_proba)

    def restore(self, state: State) -> Networks:
        return self._fitted(load_network(self.network(**state.notes), state))


@dataclass(frozen=True, kw_only=True)
class HeadMethod(NetworkMethod):
    """A method that trains heads on one vector per item.

    Parameters
    ----------
    input_dropout
        Dropout rate of the vectors.
    """

    input_dropout: Fraction = 0.3

    def _heads(
        self,
        features: Features,
        context: FitInputs,
        n: int,
        seed: int | None = None,
        **settings: Any,
    ) -> Members:
        """Return untrained heads."""
        return self.network(
            n, features.vectors.shape[1], context.n_classes, hidden=self.hidden,
            dropout=self.dropout, input_dropout=self.input_dropout,
            seed=context.seed if seed is None else seed, **settings,
        )  # fmt: skip


class TokenSource:
    """Token features with the mask as the last feature: (item, token, feature + 1)."""

    def __init__(self, tokens: TokenFeatures) -> None:
        self.tokens = tokens
        self.sizes = tokens.sizes

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, items: Any, /) -> Tensor:
        values, mask = self.tokens.load(items, trim=True)
        marked = np.concatenate([values, mask[..., None]], axis=2, dtype=np.float32)
        return torch.from_numpy(marked).to(torch.get_default_dtype())


class AttentionPooling(Heads):
    """Heads, each with its own attention over tokens."""

    def __init__(self, n: int, width: int, n_classes: int, *, hidden: int, **settings: Any) -> None:
        super().__init__(n, width, n_classes, hidden=hidden, **settings)
        self.query = initial_weights(n, width, 1, seed=self.settings["seed"])

    def inputs_from(self, features: Features) -> TokenSource:  # type: ignore[override]
        assert features.tokens is not None
        return TokenSource(features.tokens)

    def standardize(self, x: Tensor | Source) -> None:
        batches = chunks(x, _BATCH, min(len(x), _STANDARDIZED))
        tokens = torch.cat([batch[batch[..., -1] > 0][:, :-1] for batch in batches])
        self.mean, self.scale = standardization(tokens)

    def attend(self, x: Tensor) -> Tensor:
        """Return the attention of every member: (member, item, token)."""
        # The scaled query has the same softmax as scaled tokens. It has a zero for the mask, so
        # that nothing has to be copied.
        query = nn.functional.pad(self.query[:, :, 0] * self.scale, (0, 1))
        score = (x @ query.T).movedim(2, 0)
        return score.masked_fill(x[..., -1] == 0, _MASKED).softmax(dim=-1)

    def log_proba(self, x: Tensor) -> Tensor:
        pooled = self.attend(x).transpose(0, 1) @ x  # (item, member, feature + 1)
        return super().log_proba(pooled[..., :-1].transpose(0, 1))


@dataclass(frozen=True, kw_only=True)
class AttentionHeads(NetworkMethod):
    """Heads on one encoder, each with its own attention.

    Heads on one encoder, each with its own attention over words or patches.

        attention_mt = softmax over tokens t of query_m · token_t
        vector_m     = Σ_t attention_mt token_t,   then a hidden layer and a linear head

    SeedBERT expects that other initializations lead to attention on other parts of the input. Here
    every head has its own query.

    When it fails: It needs token features. Heads attend to other words by little, and rarely for
    the reasons for which people differ.

    Parameters
    ----------
    n
        Number of heads; each holds out another part of the items.
    dropout
        Dropout rate of the pooled vector and of the hidden layer.
    """

    needs: ClassVar[tuple[str, ...]] = ("tokens",)
    network: ClassVar[type[Members]] = AttentionPooling

    n: Count = 5
    hidden: Count = 64
    dropout: Fraction = 0.3
    epochs: Count = 12
    steps: Count = 300
    patience: Count = 2

    def _fit(self, features: Features, context: FitInputs) -> Networks:
        assert features.tokens is not None
        network = AttentionPooling(
            self.n, np.shape(features.tokens.values)[-1], context.n_classes, hidden=self.hidden,
            dropout=self.dropout, input_dropout=self.dropout, seed=context.seed,
        )  # fmt: skip
        weight = fold_weights(self.n, len(features), context.seed)
        return self._train(network, features, context, weight)


@dataclass(frozen=True, kw_only=True)
class Single(HeadMethod):
    """The softmax of one network.

    One network; the recovered distribution is its softmax.

    The reference for all others. A tenth of the items is the validation split, which may also set
    the temperature; labels may be smoothed. None of this can know how people spread: it corrects a
    network that is overconfident about the majority.

        p(x) = softmax(logits(x) / temperature)

    When it fails: It learns the majority, whose probability is steeper than the share of
    annotators, and is overconfident where the majority is clear to it.

    Parameters
    ----------
    held_out
        Fraction of the items in the validation split.
    temperature
        Set the temperature by the validation split.
    smoothing
        Label smoothing.
    """

    held_out: Fraction = 0.1
    temperature: bool = False
    smoothing: Fraction = 0.0

    def _fit(self, features: Features, context: FitInputs) -> Networks:
        weight = shared_split(1, len(features), self.held_out, context.seed)
        network = self._heads(features, context, 1)
        soft = np.eye(context.n_classes) if context.soft_labels is None else context.soft_labels
        soft = (1 - self.smoothing) * soft + self.smoothing / context.n_classes
        model = self._train(network, features, context, weight, soft_labels=soft)
        if self.temperature and context.soft_labels is None:
            model.calibrate(context.label)
        return model


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


class BayesianHeads(Heads):
    """Heads with normal posteriors of weights: sampled in training mode, means otherwise.

    `prior` is the weight of the divergence from the prior.
    """

    def __init__(
        self, n: int, width: int, n_classes: int, *, prior: float, **settings: Any
    ) -> None:
        super().__init__(n, width, n_classes, prior=prior, **settings)
        self.first_rho = nn.Parameter(torch.full_like(self.first, _INITIAL_RHO))
        self.last_rho = nn.Parameter(torch.full_like(self.last, _INITIAL_RHO))

    def log_proba(self, x: Tensor) -> Tensor:
        x = ((x - self.mean) * self.scale).expand(self.n, -1, -1)
        last = self._sample(self.last, self.last_rho)
        first = self._sample(self.first, self.first_rho)
        hidden = torch.relu(torch.baddbmm(self.first_bias, x, first))
        return torch.baddbmm(self.bias, hidden, last).log_softmax(dim=-1)

    def _sample(self, mean: Tensor, rho: Tensor) -> Tensor:
        return mean + softplus(rho) * torch.randn_like(mean) if self.training else mean

    def penalty(self, batch: Batch) -> Tensor | float:
        pairs = (self.first, self.first_rho), (self.last, self.last_rho)
        return self.settings["prior"] * sum((_kl_from_prior(*pair) for pair in pairs), 0.0)


def _kl_from_prior(mean: Tensor, rho: Tensor) -> Tensor:
    std = softplus(rho)
    return ((std**2 + mean**2 - 1) / 2 - torch.log(std)).sum()


@dataclass(frozen=True, kw_only=True)
class BayesHead(HeadMethod):
    """A network whose weights are sampled for every member.

    Bayes by backprop: every weight has a normal posterior, and members are draws of all weights.

        w = mu + softplus(rho) ε,  ε ~ N(0, 1),  prior w ~ N(0, 1)
        loss = -mean log p(label | x, w) + weight KL(posterior | prior) / number of items

    When it fails: The prior's weight decides the spread; with many items the posterior is narrow,
    and it is one network.

        C. Blundell, J. Cornebise, K. Kavukcuoglu, D. Wierstra. Weight uncertainty in neural
        networks.
        ICML 2015. For disagreement: N. Raj Prabhu, N. Lehmann-Willenbrock, T. Gerkmann. End-to-end
        label uncertainty modeling in speech emotion recognition using Bayesian neural networks,
        2022.

    Parameters
    ----------
    draws
        Number of members.
    weight
        Weight of the prior; 1 is Bayes' rule, less trusts the labels more.
    held_out
        Fraction of the items in the validation split.
    """

    network: ClassVar[type[Members]] = BayesianHeads

    hidden: Count = 32
    draws: Count = 30
    weight: NonNegative = 0.1
    held_out: Fraction = 0.1

    def _fit(self, features: Features, context: FitInputs) -> Networks:
        network = self._heads(features, context, 1, prior=self.weight / len(features))
        weight = shared_split(1, len(features), self.held_out, context.seed)
        return self._train(network, features, context, weight)

    def _fitted(self, network: Members, held_out_proba: Floats | None = None) -> Sampled:
        return Sampled(network, held_out_proba, self.draws)


@dataclass(frozen=True, kw_only=True)
class DeepEnsemble(HeadMethod):
    """The mean of independently trained networks.

    n independent networks: own initialization, order, dropout and validation split each.

        p(x) = mean over networks m of p_m(x)

    When it fails: Its spread is uncertainty of the model: small where there are many items, also
    where people are split.

        B. Lakshminarayanan, A. Pritzel, C. Blundell. Simple and scalable predictive uncertainty
        estimation using deep ensembles. NeurIPS 2017.

    Parameters
    ----------
    n
        Number of networks.
    held_out
        Fraction of the items in the validation split of each.
    """

    n: Count = 5
    held_out: Fraction = 0.1

    def _fit(self, features: Features, context: FitInputs) -> Mixture:
        parts = {}
        for member in range(self.n):
            seed = context.seed + 7919 * member  # different from those of neighbouring seeds
            network = self._heads(features, context, 1, seed)
            weight = shared_split(1, len(features), self.held_out, seed)
            parts[str(member)] = self._train(network, features, context, weight)
        return Mixture(parts, np.full(self.n, 1 / self.n))

    def restore(self, state: State) -> Mixture:  # type: ignore[override]
        restore = super().restore
        return Mixture.restored(state, lambda _, part: restore(part))


@dataclass(frozen=True, kw_only=True)
class EnsembleOfHeads(HeadMethod):
    """Heads on one encoder that differ by initialization and by the items they learn from.

    Heads on one frozen encoder: an ensemble at the cost of one encoding.

    `sample` says how members differ beyond their random initialization:

    - `bootstrap`: every head has its own Poisson weights of the items; the third of the items that
    it
      never sees is its validation split;
    - `folds`: every head holds out another part of the items: less diverse, and each better;
    - `same`: items, order and dropout are the same for all: SeedBERT's rule on a frozen encoder,
    twenty
      times and more cheaper than `seedbert`, which fine-tunes a copy of the encoder for each. A
      linear head has one optimum, so votes of such heads collapse when trained to convergence;
      their diversity comes from hidden layers and early stopping.

        p(x) = mean over heads m of softmax(head_m(encoder(x)))

    When it fails: Members differ by sampling, not as people do. With few items the bootstrap leaves
    too little to each.

    Parameters
    ----------
    n
        Number of heads.
    sample
        Items of a head: a bootstrap sample, all but a fold, or the same for all.
    held_out
        With `same`: the fraction of the items in the validation split.
    """

    n: Count = 10
    sample: Literal["bootstrap", "folds", "same"] = "bootstrap"
    held_out: Fraction = 0.1

    def _fit(self, features: Features, context: FitInputs) -> Networks:
        size = self.n, len(features)
        if self.sample == "same":
            weight = shared_split(*size, self.held_out, context.seed)
        else:
            draw = fold_weights if self.sample == "folds" else bootstrap_weights
            weight = draw(*size, context.seed)
        network = self._heads(features, context, self.n, shared_dropout=self.sample == "same")
        return self._train(network, features, context, weight)
