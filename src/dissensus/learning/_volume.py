"""The volume that a matrix spans, as the two forms of GeoCrowdNet reward it."""

from __future__ import annotations

import torch
from torch import Tensor

_RIDGE = 1e-6  # a classifier that says the same of all items spans nothing
_MOST = 100.0


def log_volume(matrix: Tensor) -> Tensor:
    """Return log det(MᵀM + ridge) of a matrix (row, class); zero where that is beyond measure."""
    gram = matrix.T @ matrix
    volume = torch.logdet(gram + _RIDGE * torch.eye(len(gram), dtype=gram.dtype))
    if not bool(torch.isfinite(volume)) or float(volume.detach().abs()) > _MOST:
        return matrix.new_zeros(())
    return volume
