"""Pairs laid out in rows of equal length, one or more rows per owner.

Queries that ask the same item, and vectors that go through the same annotator's classifier, are
worked on together: a product of matrices per row rather than a copy of the matrix per pair. A row
has at most twice the mean number of slots, so that rows have three times as many slots as there
are pairs at most, however unevenly the pairs are spread.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Slots", "slots"]


class Slots(NamedTuple):
    """Where pairs lie."""

    owner: Tensor  # (row)
    position: Tensor  # (pair): row × size + slot
    size: int  # slots of a row

    def lay(self, x: Tensor) -> Tensor:
        """Return pairs (pair, …) in rows, zeros where there is none: (row, slot, …)."""
        out = x.new_zeros(len(self.owner) * self.size, *x.shape[1:])
        return out.index_copy(0, self.position, x).reshape(len(self.owner), self.size, *x.shape[1:])

    def pick(self, x: Tensor) -> Tensor:
        """Return what lies in rows (row, slot, …), pair by pair: (pair, …)."""
        return x.flatten(0, 1)[self.position]


def slots(owner: Tensor) -> Slots:
    """Return rows for pairs, by the owner of each (pair).

    >>> made = slots(torch.tensor([5, 2, 5]))
    >>> made.owner.tolist(), made.size, made.lay(torch.tensor([1, 2, 3])).tolist()
    ([2, 5], 2, [[2, 0], [1, 3]])
    """
    owners, whose, count = torch.unique(owner, return_inverse=True, return_counts=True)
    size = int(min(count.max(), -(-2 * len(owner) // len(owners)))) if len(owner) else 1
    rows = -(-count // size)  # (owner)
    order = torch.argsort(whose, stable=True)
    rank = torch.empty_like(order)
    before = count.cumsum(0) - count
    rank[order] = torch.arange(len(owner), device=owner.device) - before[whose[order]]
    row = (rows.cumsum(0) - rows)[whose] + rank // size
    return Slots(owners.repeat_interleave(rows), row * size + rank % size, size)
