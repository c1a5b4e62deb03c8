"""Given matrices: the confusion matrix of every annotator is known beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..base.arrays import Array, Floats
from ..errors import DataError, OptionError
from .strategy import CrowdParameters, Design, Strategy

_CLOSE = 1e-6  # rows whose sum is this near to one are taken as they are


@dataclass(frozen=True, kw_only=True)
class GivenMatrices(Strategy):
    """Confusion matrices that are given.

    Given matrices: the confusion matrix of every annotator is known beforehand.

    Annotator a, seeing an item of class t, says g with probability `matrices[a, t, g]`. The
    matrices come from a NumPy file, or from Python with `simulate("given-matrices", matrices=…)`.

        P(label g of a | t) = matrices[a, t, g]

    When it fails: Matrices estimated from few labels are noisy, and data drawn from them are
    noisier than the crowd was.

        A. P. Dawid, A. M. Skene. Maximum likelihood estimation of observer error-rates using the
        EM algorithm. Applied Statistics 28(1), 1979. doi:10.2307/2346806

    Parameters
    ----------
    file
        A `.npy` file with an array (annotator, true class, given class).

    Examples
    --------
    >>> from dissensus import simulate
    >>> contrary = [[[0, 1], [1, 0]]]
    >>> drawn = simulate("given-matrices", matrices=contrary, n_items=4)
    >>> drawn.truth.tolist(), drawn.annotations.label.tolist()
    ([1, 1, 1, 0], [0, 0, 0, 1])
    """

    file: str | None = None

    def crowd(self, design: Design, rng: np.random.Generator) -> CrowdParameters:
        if (self.file is None) == (design.matrices is None):
            raise OptionError("given-matrices needs its matrices: give either file or matrices")
        given: Any = design.matrices if self.file is None else _load(self.file)
        return CrowdParameters(design.n_classes, _checked(given, design), {})


def _load(file: str) -> Array:
    try:
        with Path(file).open("rb") as handle:
            return np.lib.format.read_array(handle, allow_pickle=False)
    except OSError as problem:
        raise DataError(f"{file}: {problem.strerror or 'cannot be read'}") from None
    except ValueError:
        raise DataError(
            f"{file}: not one NumPy array of numbers; write it with numpy.save"
        ) from None


def _checked(given: Any, design: Design) -> Floats:
    """Return the matrices, if that is what they are."""
    try:
        matrices = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError("matrices must be numbers (annotator, true class, given class)") from None
    requested = (design.n_annotators, design.n_classes, design.n_classes)
    if matrices.shape != requested:
        raise OptionError(
            f"matrices of shape {matrices.shape}, but n_annotators = {design.n_annotators} and "
            f"n_classes = {design.n_classes} need {requested}"
        )
    wrong = ~(matrices >= 0).all(axis=2) | ~(abs(matrices.sum(axis=2) - 1) <= _CLOSE)
    if wrong.any():
        annotator, true = np.argwhere(wrong)[0].tolist()
        row = matrices[annotator, true].tolist()
        raise OptionError(
            f"annotator {annotator}, true class {true}: {row} is not a distribution; "
            "it needs numbers from 0 that sum to 1"
        )
    return matrices
