"""Ragged batches: some items, every annotation on them, and parameters with a row per annotator.

A batch holds the inputs of its items once, and one entry per annotation with the row of its item,
so the cost is that of the annotations, however many annotators there are. The order of items is a
function of seed and epoch alone: a resumed run sees the same batches.

Few of the annotators occur in a batch. A `Table` gathers their rows, and its gradient is sparse;
`RowAdam` and `RowSGD` update these rows only, with moments and bias correction by the steps in
which a row occurred. With ten thousand annotators a dense step would cost more than all else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Subset

from ...answers.annotations import Annotations, Integers
from ...errors import DataError

_WINDOW = 16  # batches whose items are sorted by size together


class Source(Protocol):
    """Inputs that are loaded when they are indexed; a tensor is one too."""

    def __len__(self) -> int: ...

    def __getitem__(self, items: Any, /) -> Tensor:
        """Return the inputs of items, by code: (item, …)."""


class Batches(Protocol):
    """What a training takes its batches from: `Examples`, or few-shot episodes.

    A batch is a named tuple of tensors that the learner understands; its inputs are `x`.
    """

    @property
    def augment(self) -> Callable[[Tensor], Tensor] | None:
        """Augmentation of the inputs of a training batch."""

    def describe(self, name: str) -> str:
        """Return how many of `name` there are, for a sentence."""

    def __len__(self) -> int:
        """Return how many items, or episodes, an epoch has."""

    @property
    def batches(self) -> Callable[..., Iterator[Any]]:
        """Yields batches of some size, by seed and epoch; see `Examples.batches`."""

    def n_batches(self, size: int) -> int:
        """Return how many batches an epoch has."""

    def digest(self) -> str:
        """Return a hash of the content."""


class Batch(NamedTuple):
    """Some items, and every annotation on them."""

    x: Tensor  # (item, …): inputs of the items of this batch
    row: Tensor  # (annotation): row of its item in x
    annotator: Tensor  # (annotation)
    label: Tensor  # (annotation)
    item: Tensor  # (item): codes, for buffers with a row per item


class LabelledInputs(NamedTuple):
    """Inputs of known truth, to choose an epoch by accuracy."""

    x: Tensor | Source  # (item, …)
    truth: Tensor | Integers  # (item): class codes


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs with the annotations on them, items in the same order.

    Parameters
    ----------
    x
        Inputs of all items: a tensor, or a source that loads them.
    annotations
        Annotations on them.
    augment
        Augmentation of the inputs of a training batch.
    sizes
        Lengths of the inputs, where a batch is padded to its longest: batches then hold items of
        similar length.
    """

    x: Tensor | Source
    annotations: Annotations
    augment: Callable[[Tensor], Tensor] | None = None
    sizes: Integers | None = None

    def __post_init__(self) -> None:
        n_items = self.annotations.n_items
        for name, values in (("inputs", self.x), ("sizes", self.sizes)):
            if values is not None and len(values) != n_items:
                raise DataError(f"{len(values)} {name}, but annotations on {n_items} items")

    def __len__(self) -> int:
        return self.n_labelled

    def describe(self, name: str = "annotations") -> str:
        """Return how many annotations there are, for a sentence."""
        return f"{len(self.annotations)} {name} held out, on {self.n_labelled} items"

    def digest(self) -> str:
        """Return a hash of the annotations."""
        digest = blake2b(digest_size=8)
        for part in (self.annotations.index, self.annotations.annotator, self.annotations.label):
            digest.update(part.astype("<i8").tobytes())
        return digest.hexdigest()

    def batches(
        self,
        size: int,
        seed: int,
        epoch: int,
        shuffle: bool = True,
        *,
        start: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> Iterator[Batch]:
        """Yield batches of `size` items, from batch number `start` on.

        Unlabelled items are left out. Several processes share every batch: each gets the items at
        `rank`, `rank + ranks`, … of it. Where a batch has fewer items than there are processes,
        the rest get its first item, which must then not count.
        """
        order = np.flatnonzero(self.annotations.labels_per_item)
        if shuffle:
            order = np.random.default_rng([seed, epoch]).permutation(order)
        if shuffle and self.sizes is not None:
            order = by_size(order, self.sizes, size, np.random.default_rng([seed, epoch, 1]))
        groups = [order[place : place + size] for place in range(start * size, len(order), size)]
        shares = [group[rank::ranks] if rank < len(group) else group[:1] for group in groups]
        if isinstance(self.x, Tensor):
            yield from map(self.batch, shares)
        else:
            yield from _loaded_ahead(self.batch, shares)

    def n_batches(self, size: int) -> int:
        """Return how many batches of `size` items an epoch has."""
        return -(-self.n_labelled // size)

    @property
    def n_labelled(self) -> int:
        """How many items have a label."""
        return int(np.count_nonzero(self.annotations.labels_per_item))

    def batch(self, items: Integers) -> Batch:
        """Return the batch of these items."""
        annotations = self.annotations
        size = annotations.index[items + 1] - annotations.index[items]  # (item): labels on each
        shift = annotations.index[items] - np.concatenate([[0], np.cumsum(size)[:-1]])  # (item)
        rows = np.repeat(shift, size) + np.arange(size.sum())  # (annotation)
        return Batch(
            x=inputs_of(self.x, items),
            row=torch.from_numpy(np.repeat(np.arange(len(items)), size)),
            annotator=torch.from_numpy(annotations.annotator[rows].astype(np.int64)),
            label=torch.from_numpy(annotations.label[rows].astype(np.int64)),
            item=torch.from_numpy(np.asarray(items, dtype=np.int64)),
        )


def hold_out(examples: Examples, share: float, seed: int) -> tuple[Examples, Examples]:
    """Return examples to train on and held-out examples; items keep their codes in both.

    Whole items are held out: a network that has seen an input with one label memorizes it, so only
    unseen items measure how well it predicts annotations.
    """
    annotations = examples.annotations
    labelled = np.flatnonzero(annotations.labels_per_item)
    items = np.random.default_rng([seed, 0x5E1D]).permutation(labelled)
    is_held_out = np.isin(annotations.item, items[: round(share * len(items))])
    return (
        replace(examples, annotations=annotations.keep(~is_held_out)),
        replace(examples, annotations=annotations.keep(is_held_out), augment=None),
    )


def by_size(order: Integers, sizes: Integers, batch: int, rng: np.random.Generator) -> Integers:
    """Return items in an order whose batches are of similar size.

    Windows of several batches are sorted by size, then whole batches are shuffled. The last batch,
    if incomplete, stays as it is.
    """
    full = len(order) // batch * batch
    pieces = np.split(order[:full], np.arange(_WINDOW * batch, full, _WINDOW * batch))
    ordered = np.concatenate([piece[np.argsort(sizes[piece], kind="stable")] for piece in pieces])
    return np.concatenate([rng.permutation(ordered.reshape(-1, batch)).ravel(), order[full:]])


def similar_sizes(x: Tensor | Source, batch: int) -> Iterator[Integers]:
    """Yield all items, some at a time, those of similar size together where x has sizes."""
    sizes = getattr(x, "sizes", None)
    order = np.arange(len(x)) if sizes is None else np.argsort(sizes, kind="stable")
    for start in range(0, len(order), batch):
        yield order[start : start + batch]


def inputs_of(x: Tensor | Source, items: Integers) -> Tensor:
    """Return the inputs of items, by code."""
    return x[torch.from_numpy(np.asarray(items, dtype=np.int64))]


def subset(x: Tensor | Source, items: Integers) -> Tensor | Source:
    """Return the inputs of items, by code; those of a source are loaded when they are indexed."""
    index: Any = torch.from_numpy(items)
    dataset: Any = x
    return x[index] if isinstance(x, Tensor) else Subset(dataset, index)


def chunks(x: Tensor | Source, size: int, stop: int | None = None) -> Iterator[Tensor]:
    """Yield inputs of up to `size` items at a time."""
    stop = len(x) if stop is None else stop
    for start in range(0, stop, size):
        yield inputs_of(x, np.arange(start, min(start + size, stop)))


def _loaded_ahead(load: Callable[[Integers], Batch], groups: list[Integers]) -> Iterator[Batch]:
    """Yield loaded groups; a thread loads the next one meanwhile."""
    if not groups:
        return
    with ThreadPoolExecutor(1) as pool:
        current = pool.submit(load, groups[0])
        for group in groups[1:]:
            upcoming = pool.submit(load, group)
            yield current.result()
            current = upcoming
        yield current.result()


class Table(nn.Embedding):
    """A parameter whose first axis is the annotators: `table(annotator)` is `table.all[annotator]`.

    Examples
    --------
    >>> table = Table(torch.eye(2).repeat(3, 1, 1))
    >>> table(torch.tensor([2, 2])).shape, table.all.shape
    (torch.Size([2, 2, 2]), torch.Size([3, 2, 2]))
    """

    def __init__(self, start: Tensor) -> None:
        flat = start.reshape(len(start), -1).clone()
        super().__init__(len(start), prod(start.shape[1:]), sparse=True, _weight=flat)
        self.shape = start.shape[1:]

    def forward(self, annotator: Tensor) -> Tensor:
        """Return the rows of annotators: (annotation, …)."""
        return super().forward(annotator).reshape(-1, *self.shape)

    @property
    def all(self) -> Tensor:
        """Every row: (annotator, …). A loss over all of them has a dense gradient."""
        return self.weight.reshape(-1, *self.shape)


class _RowOptimizer(torch.optim.Optimizer):
    """Updates only the rows with a gradient; a dense gradient has all rows."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the rows with a gradient."""
        assert closure is None
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is None:
                    continue
                if table.grad.is_sparse:
                    grad = table.grad.coalesce()
                    rows, grad = grad.indices()[0], grad.values()
                else:
                    rows, grad = torch.arange(len(table), device=table.device), table.grad
                if group["weight_decay"] and group.get("decoupled"):
                    table[rows] *= 1 - group["lr"] * group["weight_decay"]
                elif group["weight_decay"]:
                    grad = grad + group["weight_decay"] * table[rows]
                self.update(table, rows, grad, group)

    def update(self, table: Tensor, rows: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Update rows of a table by their gradient."""
        raise NotImplementedError


class RowAdam(_RowOptimizer):
    """Adam by rows, with a bias correction by the steps of each row; `decoupled` is AdamW."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled: bool = False,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**defaults, "decoupled": decoupled})

    def update(self, table: Tensor, rows: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Update rows by Adam's rule."""
        state = self.state[table]
        if not state:
            state["steps"] = torch.zeros(len(table), dtype=table.dtype, device=table.device)
            state["mean"], state["square"] = torch.zeros_like(table), torch.zeros_like(table)
        first, second = group["betas"]
        steps = state["steps"][rows] + 1
        mean = state["mean"][rows].lerp_(grad, 1 - first)
        square = state["square"][rows].lerp_(grad * grad, 1 - second)
        state["steps"][rows], state["mean"][rows], state["square"][rows] = steps, mean, square
        steps = steps[:, None]
        scale = (square / (1 - second**steps)).sqrt_().add_(group["eps"])
        table.index_add_(0, rows, mean / (1 - first**steps) / scale, alpha=-group["lr"])


class RowSGD(_RowOptimizer):
    """Gradient descent with momentum by rows."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    def update(self, table: Tensor, rows: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Update rows by gradient descent."""
        if group["momentum"]:
            state = self.state[table]
            if not state:
                state["velocity"] = torch.zeros_like(table)
            grad = state["velocity"][rows].mul_(group["momentum"]).add_(grad)
            state["velocity"][rows] = grad
        table.index_add_(0, rows, grad, alpha=-group["lr"])
