"""One row of parameters per annotator, at a cost that does not grow with their number.

A batch has few annotators. `table(annotator)` gathers their rows, and its gradient is sparse;
`RowAdam` and `RowSGD` update these rows only, with moments and bias correction by the steps in
which a row occurred. With ten thousand annotators a dense step would cost more than all else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

import torch
from torch import Tensor, nn


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
