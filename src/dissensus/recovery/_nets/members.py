"""Several networks trained at once, none of which reaches another.

Parameters have a first axis of members, so one product computes all of them. Every member weighs
items in its own way (`share`): an item that it weighs with zero is held out from it, and tells it
when to stop. Before every epoch members are looked at by the items they hold out, and what each was
at its best is kept. So every member ends at an epoch of its own; and what members say of items that
they have not learned is there for every item that somebody holds out (`left_out`).

The loss of a member is the mean of -log p at the labels of its items. Where an item has several
annotations, as for oracles, its labels share its weight. Adam changes every parameter by its own
gradient alone, so training together is training apart.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from ..._relation import Array, Floats
from ...annotations import Annotations
from ...nn.batches import Batch, Examples, Source
from ...nn.settings import Training
from ...nn.training import Learner, train
from .._base import Progress, Views

__all__ = ["Members", "dropped", "scaling", "start", "taught"]

_PIECE = 1024


class Members(Learner):
    """n networks on the same inputs; `shape` is what makes them again."""

    mean: Tensor  # (feature)
    scale: Tensor  # (feature)
    share: Tensor  # (member, item): how much an item counts; 0 is held out
    count: Tensor  # (item): labels on it
    score: Tensor  # (member): of the best epoch so far
    epoch: Tensor  # (member): which that is
    seen: Tensor  # (): the epoch at which members were looked at last

    def __init__(self, n: int, width: int, **shape: Any) -> None:
        super().__init__()
        self.n, self.smoothing, self.patience = n, 0.0, 0
        self.shape = {"n": n, "width": width, **shape}
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    @abstractmethod
    def see(self, views: Views) -> Tensor | Source:
        """Return the view that these networks take."""

    @abstractmethod
    def log_members(self, x: Tensor) -> Tensor:
        """Return what every member believes, as logarithms: (member, item, class)."""

    @abstractmethod
    def fit_scale(self, x: Tensor | Source) -> None:
        """Scale inputs by the mean and the spread of these."""

    def extra(self, batch: Batch) -> Tensor | float:
        """Return what is added to the loss beside the labels, for instance a prior."""
        return 0.0

    def ready(self, share: Tensor, count: Tensor, smoothing: float) -> None:
        """Make room for what is kept while training."""
        self.smoothing = smoothing
        self.register_buffer("share", share)
        self.register_buffer("count", count)
        self.register_buffer("score", torch.full((self.n,), -torch.inf))
        self.register_buffer("epoch", torch.zeros(self.n, dtype=torch.long))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        for name, value in list(self.named_parameters()):
            self.register_buffer(f"best_{name}", value.detach().clone())

    def likelihoods(self, batch: Batch) -> Tensor:
        """Return the mean log-likelihood of every item's labels: (member, item)."""
        log = self.log_members(batch.x)
        each = log[:, batch.row, batch.label] / self.count[batch.item][batch.row]
        mine = log.new_zeros(self.n, len(batch.item)).index_add(1, batch.row, each)
        if not (self.training and self.smoothing):
            return mine
        return (1 - self.smoothing) * mine + self.smoothing * log.mean(dim=2)

    def loss(self, batch: Batch) -> Tensor:
        told = (self.share[:, batch.item] * self.likelihoods(batch)).sum() / len(batch.item)
        return self.extra(batch) - told

    def weight(self, batch: Batch) -> int:
        return len(batch.item)

    def begin(self, examples: Examples, epoch: int) -> None:
        self.look(examples, epoch)

    def should_stop(self) -> bool:
        """Return whether no member has foreseen better for too many epochs."""
        return self.patience > 0 and int((self.seen - self.epoch).min()) >= self.patience

    @torch.no_grad()
    def look(self, examples: Examples, epoch: int) -> None:
        """Keep the weights of members that foresee the items they hold out better than before.

        One that holds out nothing keeps those of the last epoch.
        """
        if epoch == 0:
            return
        held = (self.share == 0).to(self.mean)  # (member, item)
        good = self.mean.new_zeros(self.n)
        for batch in examples.batches(_PIECE, 0, 0, shuffle=False):
            good += (held[:, batch.item] * self.likelihoods(batch)).sum(dim=1)
        size = held.sum(dim=1)
        good = torch.where(size > 0, good / size.clamp(min=1), float(epoch))
        better = good > self.score
        self.score[better], self.epoch[better] = good[better], epoch
        self.seen.fill_(epoch)
        kept = dict(self.named_buffers())
        for name, value in self.named_parameters():
            kept[f"best_{name}"][better] = value[better]

    @torch.no_grad()
    def finish(self, examples: Examples, epochs: int) -> None:
        """Look a last time, and give every member the weights of its best epoch."""
        self.eval()
        self.look(examples, epochs)
        kept = dict(self.named_buffers())
        for name, value in self.named_parameters():
            value.copy_(kept[f"best_{name}"])

    @torch.no_grad()
    def believe(self, x: Tensor | Source) -> Floats:
        """Return what every member believes: (member, item, class)."""
        found = [
            self.log_members(x[torch.arange(at, min(at + _PIECE, len(x)))]).double().exp()
            for at in range(0, len(x), _PIECE)
        ]
        if not found:
            return np.zeros((self.n, 0, self.shape["n_classes"]))
        return torch.cat(found, dim=1).numpy()

    def left_out(self, x: Tensor | Source) -> Floats:
        """Return the mean of those members that hold an item out, NaN where none does."""
        held = (self.share == 0).double().numpy()  # (member, item)
        p = np.einsum("mi,mik->ik", held, self.believe(x))
        size = held.sum(axis=0)[:, None]
        return np.divide(p, size, out=np.full_like(p, np.nan), where=size > 0)

    def weights(self) -> dict[str, Array]:
        """Return what has to be written down to have them again."""
        told = {"mean": self.mean, "scale": self.scale, **dict(self.named_parameters())}
        return {name: value.detach().numpy() for name, value in told.items()}

    def load(self, arrays: dict[str, Array]) -> Self:
        """Take weights that were written down."""
        self.load_state_dict({name: torch.tensor(value) for name, value in arrays.items()})
        return self.eval()


def start(n: int, *shape: int, seed: int) -> nn.Parameter:
    """Return weights that begin as a linear layer's do, each member's by its own seed."""
    bound = max(shape[0], 1) ** -0.5
    drawn = [
        np.random.default_rng([seed, member, *shape]).uniform(-bound, bound, shape)
        for member in range(n)
    ]
    return nn.Parameter(torch.tensor(np.stack(drawn), dtype=torch.get_default_dtype()))


def scaling(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and one over the spread; what never varies becomes zero."""
    spread = vectors.std(dim=0, unbiased=False)
    return vectors.mean(dim=0), torch.where(spread > 1e-6, 1 / spread.clamp(min=1e-6), 0.0)


def dropped(x: Tensor, share: float, *, together: bool, training: bool) -> Tensor:
    """Return x without a random share of its numbers: (member, item, feature).

    Together, members miss the same numbers: then only its start sets a member apart.
    """
    if not training or not share:
        return x
    shape = (1, *x.shape[1:]) if together else x.shape
    return x * ((torch.rand(shape) >= share).to(x) / (1 - share))


def taught(
    members: Members,
    x: Tensor | Source,
    annotations: Annotations,
    share: Tensor,
    *,
    seed: int,
    smoothing: float = 0.0,
    patience: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Members:
    """Train members, and leave each with the weights of its best epoch."""
    count = torch.from_numpy(annotations.labels_per_item).clamp(min=1).to(members.mean)
    members.fit_scale(x)
    members.patience = patience
    members.ready(share.to(members.mean), count, smoothing)
    examples = Examples(x, annotations)
    made = Training(held_out=0.0, seed=seed, **settings)
    history = train(members, examples, made, progress=progress)
    members.finish(examples, len(history.rows))
    return members
