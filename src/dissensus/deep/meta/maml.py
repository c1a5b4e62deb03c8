"""MAML: initial weights from which a few gradient steps on the support suffice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

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
from .items import Items, normalize

if TYPE_CHECKING:
    from .episodes import Episodes


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
            name: each for name, each in network.named_parameters() if each.requires_grad
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
                every = [*fast.values(), *head.values()]
                gradients = iter(
                    torch.autograd.grad(
                        loss, every, create_graph=self.second_order, allow_unused=True
                    )
                )
                fast = {name: _stepped(value, next(gradients), lr) for name, value in fast.items()}
                head = {name: _stepped(value, next(gradients), lr) for name, value in head.items()}
        task = HeadTasks(annotated.shares(), lambda u: linear(u, head["weight"], head["bias"]))
        return task, lambda new: functional_call(network, fast | buffers, (new,))

    def classify(
        self, embedding: nn.Module, episodes: Episodes
    ) -> tuple[Tensor, AdaptedTasks | None]:
        if not any(each.requires_grad for each in embedding.parameters()):
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
