"""MAML: a network whose weights are a good start for a few gradient steps on the support.

Every episode begins with the same embedding and head, and takes `steps` steps of size `lr` on

    −Σ_n Σ_k shares of votes[n, k] log p_k(x[n])

with all weights or, for embeddings that stand fast, with those of the head. The queries' loss after
these steps is what is learned from, through all of them; `first_order` takes every step as if it
did not depend on the start, which costs half. Statistics of batch normalisation are those of the
episode's own support or queries.

    C. Finn, P. Abbeel, S. Levine. Model-agnostic meta-learning for fast adaptation of deep
    networks. ICML 2017. arXiv:1703.03400
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ..errors import OptionError
from ..params import Count, Positive
from .adapter import Adapted, Adapter, Embed, Rule, logarithm, whole
from .items import Items, share

if TYPE_CHECKING:
    from .episodes import Episodes

__all__ = ["Maml", "MamlAdapter"]


class HeadTask(Adapted):
    """A linear head per episode."""

    def __init__(self, posterior: Tensor, weight: Tensor, bias: Tensor) -> None:
        self.posterior, self.weight, self.bias = posterior, weight, bias

    def log_truth(self, items: Items) -> Tensor:
        return (items.u @ self.weight + self.bias).log_softmax(dim=2)


class MamlAdapter(Adapter):
    """A linear head that begins alike for all tasks, and gradient steps from there."""

    def __init__(self, width: int, n_classes: int, settings: Maml) -> None:
        super().__init__()
        self.head = nn.Linear(width, n_classes)
        nn.init.zeros_(self.head.weight)
        self.log_lr = logarithm(settings.lr)
        self.steps, self.first_order = settings.steps, settings.first_order

    def adapt(self, support: Items) -> HeadTask:
        """Take the steps with the head alone, on embeddings that stand fast."""
        self._check(support.n_classes)
        shares = support.shares()
        heard = (support.votes().sum(dim=2) > 0) * support.present
        lr = self.log_lr.exp()
        with torch.enable_grad():
            weight = self.head.weight.T.expand(len(support.u), -1, -1)
            bias = self.head.bias.expand(len(support.u), 1, -1)
            for _ in range(self.steps):
                log = (support.u @ weight + bias).log_softmax(dim=2)
                loss = -((shares * log).sum(dim=2) * heard).sum(dim=1) / heard.sum(dim=1)
                found = torch.autograd.grad(loss.sum(), (weight, bias), create_graph=self.second)
                weight, bias = weight - lr * found[0], bias - lr * found[1]
        return HeadTask(shares, weight, bias)

    def learn(self, embedding: Embed, x: Tensor, annotations: Items) -> tuple[Adapted, Embed]:
        """Take the steps with all weights that learn."""
        assert isinstance(embedding, nn.Module)
        network = embedding
        fast: dict[str, Tensor] = {
            name: each for name, each in network.named_parameters() if each.requires_grad
        }
        if not fast:
            return super().learn(embedding, x, annotations)
        self._check(annotations.n_classes)
        votes = annotations.votes()[0]
        heard = votes.sum(dim=1) > 0
        x, shares = x[heard], share(votes[heard])
        kept = {name: value.clone() for name, value in network.named_buffers()}  # stay as they are
        head: dict[str, Tensor] = dict(self.head.named_parameters())
        lr = self.log_lr.exp()
        with torch.enable_grad():
            for _ in range(self.steps):
                u = functional_call(network, fast | kept, (x,))
                log = whole(functional_call(self.head, head, (u,))).log_softmax(dim=1)
                loss = -(shares * log).sum(dim=1).mean()
                every = [*fast.values(), *head.values()]
                found = iter(
                    torch.autograd.grad(loss, every, create_graph=self.second, allow_unused=True)
                )
                fast = {name: _moved(value, next(found), lr) for name, value in fast.items()}
                head = {name: _moved(value, next(found), lr) for name, value in head.items()}
        task = HeadTask(annotations.shares(), head["weight"].T[None], head["bias"][None, None])
        return task, lambda new: functional_call(network, fast | kept, (new,))

    def classify(self, embedding: nn.Module, episodes: Episodes) -> tuple[Tensor, Adapted | None]:
        if not any(each.requires_grad for each in embedding.parameters()):
            return super().classify(embedding, episodes)
        n_classes = episodes.classes.shape[1]
        found = []
        with _own_statistics(embedding):
            for support, label, query in zip(
                episodes.support, episodes.label, episodes.query, strict=True
            ):
                blank = torch.zeros(1, len(support), 0, device=episodes.x.device)
                annotations = Items.of(blank, label[None], n_classes=n_classes)
                task, embed = self.learn(embedding, episodes.x[support], annotations)
                new = whole(embed(episodes.x[query]))[None]
                found.append(task.log_truth(Items.of(new, n_classes=n_classes)))
        return torch.cat(found), None

    @property
    def second(self) -> bool:
        """Whether gradients go through gradients."""
        return self.training and not self.first_order

    def _check(self, n_classes: int) -> None:
        if n_classes != self.head.out_features:
            raise OptionError(
                f"maml was trained on tasks of {self.head.out_features} classes, not of "
                f"{n_classes}; adapters of the em family take any number"
            )


@contextmanager
def _own_statistics(network: nn.Module) -> Iterator[None]:
    """Let batch normalisation take the statistics of what it sees."""
    learning = network.training
    network.train()
    try:
        yield
    finally:
        network.train(learning)


def _moved(value: Tensor, gradient: Tensor | None, lr: Tensor) -> Tensor:
    return value if gradient is None else value - lr * gradient


@dataclass(frozen=True, kw_only=True)
class Maml(Rule):
    """Gradient steps from a start that was learned.

    Parameters
    ----------
    steps
        Gradient steps on the support.
    lr
        Their size, where training begins.
    first_order
        Leave out how gradients depend on the start.
    """

    joint: ClassVar[bool] = True

    steps: Count = 5
    lr: Positive = 1.0
    first_order: bool = False

    def build(self, width: int, n_classes: int) -> MamlAdapter:
        return MamlAdapter(width, n_classes, self)
