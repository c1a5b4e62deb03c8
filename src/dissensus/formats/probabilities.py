"""Probabilities of classes that classifiers give to items, checked against the annotations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..base.arrays import Floats
from ..answers.annotations import Annotations
from ..errors import DataError


def as_models(annotations: Annotations, probabilities: npt.ArrayLike | Sequence[Floats]) -> Floats:
    """Return probabilities of one or several classifiers, checked: (model, item, class)."""
    if annotations.n_classes == 0:
        raise DataError("there is no class to choose from; give labels or declare classes")
    models = np.asarray(probabilities, dtype=np.float64)
    if models.ndim == 2:
        models = models[None]
    shape = (annotations.n_items, annotations.n_classes)
    if models.ndim != 3 or models.shape[1:] != shape or len(models) == 0:
        raise DataError(
            f"probabilities are (item, class), here {shape}, or (model, item, class), "
            f"but these are {np.shape(probabilities)}"
        )
    bad = ~(np.abs(models.sum(axis=2) - 1) < 1e-3) | (models.min(axis=2, initial=0) < 0)
    if bad.any():
        item = bad.any(axis=0).argmax()
        raise DataError(
            f"probabilities of item {annotations.items[item]!r} are not from 0 to 1 with sum 1; "
            f"{bad.any(axis=0).sum()} items are like this"
        )
    return models
