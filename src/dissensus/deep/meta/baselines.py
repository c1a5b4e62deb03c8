"""Adapters without a model of annotators: prototypes, a neural process, MAML, ridge regression.

They learn from aggregated labels or from vote shares, each with a head for every episode.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import linear

from ...params import Count, Positive
from .base import (
    AdaptedTasks,
    Adapter,
    AdapterSettings,
    Embed,
    HeadTasks,
    as_float32,
    check_n_classes,
    log_parameter,
)
from .em import EmFull, squared_distance
from .episodes import Items, normalize

if TYPE_CHECKING:
    from .episodes import Episodes


_ROUNDS = 50  # of Dawid & Skene, which aggregates the labels of prototypes


class PrototypeAdapter(Adapter):
    """Aggregated labels, then class means."""

    def __init__(self, settings: Prototypes) -> None:
        super().__init__()
        self.labels = settings.labels
        self.log_scale = log_parameter(settings.scale)
        model = EmFull(steps=_ROUNDS, c=settings.c, right=settings.right).build(0, 2)
        self.aggregator = model.requires_grad_(False)

    def adapt(self, support: Items) -> HeadTasks:
        posterior = self.aggregate(support)
        labelled = support.votes().sum(dim=2, keepdim=True) > 0
        weight = posterior * labelled
        total = torch.einsum("enk,enm->ekm", weight, support.u)
        count = weight.sum(dim=1)[:, :, None]
        # A class without items has the mean of all items.
        middle = support.u.mean(dim=1, keepdim=True)
        mean = torch.where(count > 0, total / count.clamp(min=1e-12), middle)
        scale = self.log_scale.exp()
        return HeadTasks(posterior, lambda u: -squared_distance(u * scale, mean * scale) / 2)

    @torch.no_grad()
    def aggregate(self, support: Items) -> Tensor:
        """Return the labels: (episode, item, class)."""
        if self.labels == "shares":
            return support.shares()
        if self.labels == "majority":
            votes = support.votes()
            return normalize((votes == votes.max(dim=2, keepdim=True).values).to(votes))
        posterior = self.aggregator.adapt(support._replace(u=support.u[:, :, :0])).posterior
        best = posterior >= posterior.max(dim=2, keepdim=True).values - 1e-9
        return normalize(best.to(posterior))


@dataclass(frozen=True, kw_only=True)
class Prototypes(AdapterSettings):
    """Prototypes of aggregated labels.

    Prototypical networks on aggregated labels: first aggregate, then average embeddings.

        label = majority | vote shares | Dawid & Skene with priors, without the embeddings
        mean[k] = Σ_n label[n, k] u[n] / Σ_n label[n, k]
        P(t = k | u) ∝ exp(−scale² ‖u − mean[k]‖² / 2)

    Unlike in `em-full`, embeddings do not inform the labels. A tied majority splits its item among
    the tied classes; unlabelled items are left out.

    When it fails: Classes that are not round clusters in the embedding, and noisy annotators:
    labels are aggregated before items are compared, so embeddings cannot correct them.

        J. Snell, K. Swersky, R. Zemel. Prototypical networks for few-shot learning. NeurIPS 2017.
        arXiv:1703.05175

    Parameters
    ----------
    labels
        Aggregation of the labels.
    scale
        Factor on embeddings.
    c
        Of Dawid & Skene: pseudo-count of every label, for every true class.
    right
        Of Dawid & Skene: additional pseudo-count of the right label.
    """

    labels: Literal["majority", "shares", "dawid-skene"] = "majority"
    scale: Positive = 1.0
    c: Positive = 0.1
    right: Positive = 1.0

    def build(self, width: int, n_classes: int) -> PrototypeAdapter:
        return PrototypeAdapter(self)


class CnpAdapter(Adapter):
    """An encoder of the support and a decoder of queries."""

    def __init__(self, width: int, n_classes: int, hidden: int) -> None:
        super().__init__()
        self.n_classes = n_classes
        self.encode = _mlp(width + n_classes, hidden, hidden)
        self.decode = _mlp(width + hidden, hidden, n_classes)

    def adapt(self, support: Items) -> HeadTasks:
        check_n_classes("cnp", self.n_classes, support.n_classes)
        shares = support.shares()
        context = self.encode(torch.cat([support.u, shares], dim=2)).mean(dim=1, keepdim=True)

        def logits(u: Tensor) -> Tensor:
            return self.decode(torch.cat([u, context.expand(-1, u.shape[1], -1)], dim=2))

        return HeadTasks(shares, logits)


def _mlp(width: int, hidden: int, out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, out),
    )


@dataclass(frozen=True, kw_only=True)
class Cnp(AdapterSettings):
    """A conditional neural process.

    A conditional neural process: one network summarizes the support, another answers queries.

        context = mean over the support of encode(u[n], vote shares[n])
        P(t | u) = softmax decode(u, context)

    It is trained with the embedding, and for a fixed number of classes.

    When it fails: It works for the number of classes it was trained for and for supports as those
    of the source tasks; the mean over the support underfits.

        M. Garnelo et al. Conditional neural processes. ICML 2018. arXiv:1807.01613

    Parameters
    ----------
    hidden
        Width of the layers.
    """

    joint: ClassVar[bool] = True

    hidden: Count = 128

    def build(self, width: int, n_classes: int) -> CnpAdapter:
        return CnpAdapter(width, n_classes, self.hidden)


class MamlAdapter(Adapter):
    """A linear head with learned initial weights, and gradient steps."""

    def __init__(self, width: int, n_classes: int, settings: Maml) -> None:
        super().__init__()
        self.head = nn.Linear(width, n_classes)
        nn.init.zeros_(self.head.weight)
        self.log_lr = log_parameter(settings.lr)
        self.steps, self.first_order = settings.steps, settings.first_order

    def adapt(self, support: Items) -> HeadTasks:
        """Take the steps with the head alone, on frozen embeddings."""
        check_n_classes("maml", self.head.out_features, support.n_classes)
        shares = support.shares()
        labelled = support.votes().sum(dim=2) > 0
        lr = self.log_lr.exp()
        with torch.enable_grad():
            weight = self.head.weight.T.expand(len(support.u), -1, -1)
            bias = self.head.bias.expand(len(support.u), 1, -1)
            for _ in range(self.steps):
                log = (support.u @ weight + bias).log_softmax(dim=2)
                loss = -((shares * log).sum(dim=2) * labelled).sum(dim=1) / labelled.sum(dim=1)
                gradients = torch.autograd.grad(
                    loss.sum(), (weight, bias), create_graph=self.second_order
                )
                weight, bias = weight - lr * gradients[0], bias - lr * gradients[1]
        return HeadTasks(shares, lambda u: u @ weight + bias)

    def adapt_one(
        self, embedding: Embed, x: Tensor, annotated: Items
    ) -> tuple[AdaptedTasks, Embed]:
        """Take the steps with all trainable weights."""
        assert isinstance(embedding, nn.Module)
        network = embedding
        fast: dict[str, Tensor] = {
            name: parameter
            for name, parameter in network.named_parameters()
            if parameter.requires_grad
        }
        if not fast:
            return super().adapt_one(embedding, x, annotated)
        check_n_classes("maml", self.head.out_features, annotated.n_classes)
        votes = annotated.votes()[0]
        labelled = votes.sum(dim=1) > 0
        x, shares = x[labelled], normalize(votes[labelled])
        buffers = {name: value.clone() for name, value in network.named_buffers()}
        head: dict[str, Tensor] = dict(self.head.named_parameters())
        lr = self.log_lr.exp()
        with torch.enable_grad():
            for _ in range(self.steps):
                u = functional_call(network, fast | buffers, (x,))
                log = as_float32(functional_call(self.head, head, (u,))).log_softmax(dim=1)
                loss = -(shares * log).sum(dim=1).mean()
                weights = [*fast.values(), *head.values()]
                gradients = iter(
                    torch.autograd.grad(
                        loss, weights, create_graph=self.second_order, allow_unused=True
                    )
                )
                fast = {name: _stepped(value, next(gradients), lr) for name, value in fast.items()}
                head = {name: _stepped(value, next(gradients), lr) for name, value in head.items()}
        task = HeadTasks(annotated.shares(), lambda u: linear(u, head["weight"], head["bias"]))
        return task, lambda new: functional_call(network, fast | buffers, (new,))

    def classify(
        self, embedding: nn.Module, episodes: Episodes
    ) -> tuple[Tensor, AdaptedTasks | None]:
        if not any(parameter.requires_grad for parameter in embedding.parameters()):
            return super().classify(embedding, episodes)
        n_classes = episodes.classes.shape[1]
        log_truth = []
        with _batch_statistics(embedding):
            for support, label, query in zip(
                episodes.support, episodes.label, episodes.query, strict=True
            ):
                blank = torch.zeros(1, len(support), 0, device=episodes.x.device)
                annotated = Items.of(blank, label[None], n_classes=n_classes)
                task, embed = self.adapt_one(embedding, episodes.x[support], annotated)
                new = as_float32(embed(episodes.x[query]))[None]
                log_truth.append(task.log_truth(Items.of(new, n_classes=n_classes)))
        return torch.cat(log_truth), None

    @property
    def second_order(self) -> bool:
        """Whether to differentiate through the gradients."""
        return self.training and not self.first_order


@contextmanager
def _batch_statistics(network: nn.Module) -> Iterator[None]:
    """Let batch normalization use the statistics of the batch."""
    training = network.training
    network.train()
    try:
        yield
    finally:
        network.train(training)


def _stepped(value: Tensor, gradient: Tensor | None, lr: Tensor) -> Tensor:
    return value if gradient is None else value - lr * gradient


@dataclass(frozen=True, kw_only=True)
class Maml(AdapterSettings):
    """Gradient steps from meta-learned initial weights.

    MAML: initial weights from which a few gradient steps on the support suffice.

    Every episode starts from the same embedding and head, and takes `steps` steps of size `lr` on

        −Σ_n Σ_k vote shares[n, k] log p_k(x[n])

    with all weights or, for frozen embeddings, with those of the head. Meta-training differentiates
    the queries' loss through these steps; `first_order` ignores second derivatives, which costs
    half. Batch normalization uses the statistics of the episode's own support or queries.

    When it fails: Few source tasks, or a target that is unlike them: a handful of steps does not
    leave the start. Training is slow and sensitive to `lr`. Votes are learned as they are.

        C. Finn, P. Abbeel, S. Levine. Model-agnostic meta-learning for fast adaptation of deep
        networks. ICML 2017. arXiv:1703.03400

    Parameters
    ----------
    steps
        Gradient steps on the support.
    lr
        Initial step size.
    first_order
        Ignore second derivatives.
    """

    joint: ClassVar[bool] = True

    steps: Count = 5
    lr: Positive = 1.0
    first_order: bool = False

    def build(self, width: int, n_classes: int) -> MamlAdapter:
        return MamlAdapter(width, n_classes, self)


class RidgeAdapter(Adapter):
    """Ridge regression of vote shares on embeddings."""

    def __init__(self, settings: Ridge) -> None:
        super().__init__()
        self.log_gamma = log_parameter(settings.gamma)
        self.log_sharpness = log_parameter(settings.sharpness)

    def adapt(self, support: Items) -> HeadTasks:
        shares = support.shares()
        labelled = support.votes().sum(dim=2) > 0
        u = _with_intercept(support.u) * labelled[:, :, None]
        target = (shares - 1 / support.n_classes) * labelled[:, :, None]
        eye = torch.eye(u.shape[1], dtype=u.dtype, device=u.device)
        gram = u @ u.transpose(1, 2) + self.log_gamma.exp() * eye
        weight = u.transpose(1, 2) @ torch.linalg.solve(gram, target)
        sharpness = self.log_sharpness.exp()
        return HeadTasks(shares, lambda u: sharpness * _with_intercept(u) @ weight)


def _with_intercept(u: Tensor) -> Tensor:
    return torch.cat([u, torch.ones_like(u[:, :, :1])], dim=2)


@dataclass(frozen=True, kw_only=True)
class Ridge(AdapterSettings):
    """Ridge regression on vote shares.

    A ridge-regression head in closed form on vote shares.

    With U the embeddings of the support and a column of ones, and Y the vote shares less 1/K, one
    column per class:

        W = Uᵀ (U Uᵀ + gamma)⁻¹ Y,    P(t | u) = softmax(sharpness · u W)

    The inverse has as many rows as the support has items, and gradients pass through it.

    When it fails: Vote shares count all annotators the same, so spammers go into the regression in
    full.

        L. Bertinetto, J. F. Henriques, P. H. S. Torr, A. Vedaldi. Meta-learning with differentiable
        closed-form solvers. ICLR 2019. arXiv:1805.08136

    Parameters
    ----------
    gamma
        Ridge penalty.
    sharpness
        Factor on the logits.
    """

    gamma: Positive = 1.0
    sharpness: Positive = 5.0

    def build(self, width: int, n_classes: int) -> RidgeAdapter:
        return RidgeAdapter(self)
