"""Members of an ensemble, trained in one batch and early-stopped one by one.

All n networks are one module whose parameters have the member as their first axis. The loss is a
sum over members, and the gradient of a member depends on its own parameters alone, so training
them together is the same as training each alone. `sample_weight` says how much every member weighs
every item: items of weight 0 are the validation split of that member.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...answers.annotations import Annotations
from ...base.arrays import Array, Floats, Integers
from ...method import Progress
from ..nn import Features, Learner, Training, train
from ..nn.batches import Batch, Examples, Source, inputs_of, similar_sizes
from ..nn.devices import torch_seed

_BATCH = 64


class Members(Learner):
    """n networks on the same inputs; `settings` are the arguments of the constructor."""

    mean: Tensor  # (feature)
    scale: Tensor  # (feature)
    sample_weight: Tensor  # (member, item): 0 is held out
    soft_labels: Tensor  # (label, class): what a label teaches
    n_labels: Tensor  # (item)
    best_score: Tensor  # (member)
    best_epoch: Tensor  # (member)
    best_mean: Tensor  # (): of the scores of all members in one epoch
    since_best: Tensor  # (): epochs

    def __init__(
        self, n: int, width: int, n_classes: int, *, seed: int = 0, **settings: Any
    ) -> None:
        super().__init__()
        self.n, self.patience = n, 0
        self.settings = {"n": n, "width": width, "n_classes": n_classes, "seed": seed, **settings}
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    @abstractmethod
    def inputs_from(self, features: Features) -> Tensor | Source:
        """Return the features that these networks take."""

    @abstractmethod
    def log_proba(self, x: Tensor) -> Tensor:
        """Return log-probabilities of every member: (member, item, class)."""

    @abstractmethod
    def standardize(self, x: Tensor | Source) -> None:
        """Set the mean and the scale of the inputs."""

    def penalty(self, batch: Batch) -> Tensor | float:
        """Return what is added to the loss of the labels, for instance a prior."""
        return 0.0

    def item_log_likelihood(self, batch: Batch) -> Tensor:
        """Return the mean log-likelihood of every item's labels: (member, item).

        In training it is that of soft labels.
        """
        return self.mean_over_labels(self.log_proba(batch.x), batch)

    def mean_over_labels(self, log: Tensor, batch: Batch) -> Tensor:
        """Return the mean log-probability of every item's labels: (member, item)."""
        if self.training:
            likelihood = torch.einsum(
                "mrk,rk->mr", log[:, batch.row], self.soft_labels[batch.label]
            )
        else:
            likelihood = log[:, batch.row, batch.label]
        likelihood = likelihood / self.n_labels[batch.item][batch.row]
        return log.new_zeros(self.n, len(batch.item)).index_add(1, batch.row, likelihood)

    def loss(self, batch: Batch) -> Tensor:
        likelihood = self.sample_weight[:, batch.item] * self.item_log_likelihood(batch)
        return self.penalty(batch) - likelihood.sum() / len(batch.item)

    def weight(self, batch: Batch) -> int:
        return len(batch.item)

    def begin(self, examples: Examples, epoch: int) -> None:
        self.keep_best(examples, epoch)

    def should_stop(self) -> bool:
        return 0 < self.patience <= int(self.since_best)

    def prepare(self, sample_weight: Tensor, n_labels: Tensor, soft_labels: Tensor) -> None:
        """Allocate the buffers of training."""
        self.register_buffer("soft_labels", soft_labels)
        self.register_buffer("sample_weight", sample_weight)
        self.register_buffer("n_labels", n_labels)
        self.register_buffer("best_score", torch.full((self.n,), -torch.inf))
        self.register_buffer("best_epoch", torch.zeros(self.n, dtype=torch.long))
        self.register_buffer("best_mean", torch.tensor(-torch.inf))
        self.register_buffer("since_best", torch.zeros((), dtype=torch.long))
        for name, value in list(self.named_parameters()):
            self.register_buffer(f"best_{name}", value.detach().clone())

    @torch.no_grad()
    def keep_best(self, examples: Examples, epoch: int) -> None:
        """Store the weights of members whose held-out likelihood improved.

        A member without held-out items stores those of the last epoch.
        """
        if epoch == 0:
            return
        held_out = (self.sample_weight == 0).to(self.mean)  # (member, item)
        total = self.mean.new_zeros(self.n)
        for items in similar_sizes(examples.x, _BATCH):
            batch = examples.batch(items)
            total += (held_out[:, batch.item] * self.item_log_likelihood(batch)).sum(dim=1)
        size = held_out.sum(dim=1)
        score = torch.where(size > 0, total / size.clamp(min=1), float(epoch))
        better = score > self.best_score
        self.best_score[better], self.best_epoch[better] = score[better], epoch
        # The mean is less noisy than the score of one member, which some epoch improves by luck.
        improved = bool(score.mean() > self.best_mean)
        self.best_mean = torch.maximum(self.best_mean, score.mean())
        self.since_best.copy_(torch.tensor(0 if improved else int(self.since_best) + 1))
        for name, value in self.named_parameters():
            self.get_buffer(f"best_{name}")[better] = value[better]

    @torch.no_grad()
    def restore_best(self, examples: Examples, epochs: int) -> None:
        """Give every member the weights of its best epoch, the last one included."""
        self.eval()
        self.keep_best(examples, epochs)
        for name, value in self.named_parameters():
            value.copy_(self.get_buffer(f"best_{name}"))

    @torch.no_grad()
    def proba(self, x: Tensor | Source) -> Floats:
        """Return the probabilities of every member: (member, item, class)."""
        p = np.zeros((self.n, len(x), self.settings["n_classes"]))
        for items in similar_sizes(x, _BATCH):
            p[:, items] = self.log_proba(inputs_of(x, items)).double().exp().numpy()
        return p

    def sample_proba(self, x: Tensor | Source, passes: int) -> Floats:
        """Return probabilities of Monte-Carlo passes in training mode: (pass, item, class)."""
        with torch_seed(self.settings["seed"]):
            self.train()
            try:
                return np.concatenate([self.proba(x) for _ in range(passes)])
            finally:
                self.eval()

    def held_out_proba(self, x: Tensor | Source) -> Floats:
        """Return the mean of the members that hold an item out, NaN where none does."""
        held_out = (self.sample_weight == 0).double().numpy()  # (member, item)
        p = np.einsum("mi,mik->ik", held_out, self.proba(x))
        size = held_out.sum(axis=0)[:, None]
        return np.divide(p, size, out=np.full_like(p, np.nan), where=size > 0)

    def arrays(self) -> dict[str, Array]:
        """Return the weights."""
        values = {"mean": self.mean, "scale": self.scale, **dict(self.named_parameters())}
        return {name: value.detach().numpy() for name, value in values.items()}

    def without(self, x: Tensor, rate: float, *, shared: bool = False) -> Tensor:
        """Return x after dropout, with the same mask for all members if it is shared."""
        if not self.training or not rate:
            return x
        shape = (1, *x.shape[1:]) if shared else x.shape
        return x * ((torch.rand(shape) >= rate).to(x) / (1 - rate))


def initial_weights(n: int, *shape: int, seed: int) -> nn.Parameter:
    """Return weights initialized as a linear layer's, with a random stream per member."""
    bound = max(shape[0], 1) ** -0.5
    values = [
        np.random.default_rng([seed, member, *shape]).uniform(-bound, bound, shape)
        for member in range(n)
    ]
    return nn.Parameter(torch.tensor(np.stack(values), dtype=torch.get_default_dtype()))


def shared_split(n: int, n_items: int, held_out: float, seed: int) -> Tensor:
    """Return weights of members with one validation split for all: (member, item)."""
    order = np.random.default_rng([seed, 0x5E1D]).permutation(n_items)
    weight = np.ones(n_items)
    weight[order[: round(held_out * n_items)]] = 0
    return _tensor(np.tile(weight, (n, 1)))


def fold_weights(n: int, n_items: int, seed: int) -> Tensor:
    """Return weights of members each of which holds out another nth, or fifth, of the items."""
    fold = np.random.default_rng([seed, 0xF01D]).permutation(n_items) % max(n, 5)
    return _tensor((fold != np.arange(n)[:, None]).astype(np.float64))


def bootstrap_weights(n: int, n_items: int, seed: int) -> Tensor:
    """Return bootstrap weights: Poisson with mean one, drawn for every member."""
    return _tensor(np.random.default_rng([seed, 0xBA6]).poisson(1.0, (n, n_items)))


def _tensor(weight: Floats | Integers) -> Tensor:
    return torch.tensor(weight, dtype=torch.get_default_dtype())


def train_members(
    members: Members,
    x: Tensor | Source,
    annotations: Annotations,
    sample_weight: Tensor,
    *,
    seed: int,
    soft_labels: Floats | None = None,
    patience: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> None:
    """Train members, and leave each with the weights of its best epoch."""
    n_labels = torch.from_numpy(annotations.labels_per_item).clamp(min=1).to(members.mean)
    members.standardize(x)
    members.patience = patience
    soft = np.eye(annotations.n_classes) if soft_labels is None else soft_labels
    members.prepare(
        sample_weight.to(members.mean), n_labels, torch.from_numpy(soft).to(members.mean)
    )
    examples = Examples(x, annotations, sizes=getattr(x, "sizes", None))
    training = Training(held_out=0.0, seed=seed, **settings)
    history = train(members, examples, training, progress=progress)
    members.restore_best(examples, len(history.rows))
