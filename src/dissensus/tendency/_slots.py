"""Pairs arranged in padded rows of equal length, one or more rows per owner.

Queries on the same item, and vectors for the same annotator's classifier, are processed together:
one matrix product per row instead of a copy of the matrix per pair. A row has at most twice the
mean number of slots, so rows have at most three times as many slots as there are pairs, however
unevenly pairs are distributed.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Slots(NamedTuple):
    """Positions of pairs in padded rows."""

    owner: Tensor  # (row)
    position: Tensor  # (pair): row × size + slot
    size: int  # slots of a row

    def pack(self, x: Tensor) -> Tensor:
        """Return pairs (pair, …) in rows, padded with zeros: (row, slot, …)."""
        out = x.new_zeros(len(self.owner) * self.size, *x.shape[1:])
        return out.index_copy(0, self.position, x).reshape(len(self.owner), self.size, *x.shape[1:])

    def unpack(self, x: Tensor) -> Tensor:
        """Return pairs (pair, …) from rows (row, slot, …)."""
        return x.flatten(0, 1)[self.position]


def slots(owner: Tensor) -> Slots:
    """Return rows for pairs, given the owner of each (pair).

    >>> rows = slots(torch.tensor([5, 2, 5]))
    >>> rows.owner.tolist(), rows.size, rows.pack(torch.tensor([1, 2, 3])).tolist()
    ([2, 5], 2, [[2, 0], [1, 3]])
    """
    owners, index, count = torch.unique(owner, return_inverse=True, return_counts=True)
    size = int(min(count.max(), -(-2 * len(owner) // len(owners)))) if len(owner) else 1
    n_rows = -(-count // size)  # (owner)
    order = torch.argsort(index, stable=True)
    rank = torch.empty_like(order)
    before = count.cumsum(0) - count
    rank[order] = torch.arange(len(owner), device=owner.device) - before[index[order]]
    row = (n_rows.cumsum(0) - n_rows)[index] + rank // size
    return Slots(owners.repeat_interleave(n_rows), row * size + rank % size, size)
