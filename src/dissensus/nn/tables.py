"""One row of parameters per annotator, at a cost that does not grow with their number.

A step sees few annotators. `table(annotator)` gathers their rows, and its gradient has these rows
only; `RowAdam` and `RowSGD` then change these rows only, with the momenta and the bias correction
of the steps in which a row was seen. At ten thousand annotators the dense step would cost more
than everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["RowAdam", "RowSGD", "Table"]


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

    def extra_repr(self) -> str:
        """Return the sizes, as a print of the network shows them."""
        return f"{self.num_embeddings}, {tuple(self.shape)}"


class _Rows(torch.optim.Optimizer):
    """Optimisers that change only the rows in which a gradient is; a dense one is all rows."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the rows that were seen since the gradients were cleared."""
        told = None
        if closure is not None:
            with torch.enable_grad():
                told = closure()
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
                self.change(table, rows, grad, group)
        return told

    def change(self, table: Tensor, rows: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Change some rows of a table by the gradient there."""
        raise NotImplementedError


class RowAdam(_Rows):
    """Adam on the rows that are seen; how often each was seen corrects its own bias.

    With `decoupled`, rows that are seen shrink by themselves, beside the gradient, as in AdamW.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled: bool = False,
    ) -> None:
        told = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, {**told, "decoupled": decoupled})

    def change(self, table: Tensor, rows: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Move rows against the running mean of their gradients, over its spread."""
        kept = self.state[table]
        if not kept:
            kept["seen"] = torch.zeros(len(table), dtype=table.dtype, device=table.device)
            kept["mean"], kept["square"] = torch.zeros_like(table), torch.zeros_like(table)
        first, second = group["betas"]
        seen = kept["seen"][rows] + 1
        mean = kept["mean"][rows].lerp_(grad, 1 - first)
        square = kept["square"][rows].lerp_(grad * grad, 1 - second)
        kept["seen"][rows], kept["mean"][rows], kept["square"][rows] = seen, mean, square
        seen = seen[:, None]
        spread = (square / (1 - second**seen)).sqrt_().add_(group["eps"])
        table.index_add_(0, rows, mean / (1 - first**seen) / spread, alpha=-group["lr"])


class RowSGD(_Rows):
    """Gradient descent with momentum on the rows that are seen."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    def change(self, table: Tensor, rows: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Move rows against their gradient and what is left of the last moves."""
        if group["momentum"]:
            kept = self.state[table]
            if not kept:
                kept["move"] = torch.zeros_like(table)
            grad = kept["move"][rows].mul_(group["momentum"]).add_(grad)
            kept["move"][rows] = grad
        table.index_add_(0, rows, grad, alpha=-group["lr"])
