"""Answers of workers who always say the same, removed."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from .aggregation.base import require
from .metrics.data import uncertainty

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["entropy_threshold"]


def entropy_threshold(
    answers: pd.DataFrame,
    workers_skills: pd.Series | None = None,
    percentile: int = 10,
    min_answers: int = 2,
) -> pd.DataFrame:
    """Return the answers without those of workers whose labels have the least entropy.

    Only workers with `min_answers` answers are compared; those at or below the percentile go.
    """
    count = require(answers).groupby("worker")["label"].count()
    compared = answers[answers["worker"].isin(count.index[count >= min_answers])]
    if compared.empty:
        return answers.copy(deep=False)
    entropy: Any = uncertainty(compared, workers_skills, compute_by="worker", aggregate=False)
    removed = entropy.index[entropy <= np.percentile(entropy, percentile)]
    remaining = answers[~answers["worker"].isin(removed)]
    if len(remaining) <= len(answers) // 2:
        warnings.warn(
            "Removed >= 1/2 of answers with entropy_threshold. This might lead to poor annotation "
            "quality. Try a lower percentile, or more min_answers.",
            stacklevel=2,
        )
    return remaining
