"""How well labels fit probabilities of the classes (Northcutt, Jiang & Chuang 2021).

With P the probabilities of an item and k the label:

    self_confidence              P[k]
    normalized_margin            (P[k] - the highest of the others + 1) / 2
    confidence_weighted_entropy  log(1 + x) / x, x = entropy(P) / (log(n_classes) P[k])

Adjusted probabilities account for unequal classes: P less the mean confidence in every class, over
the items with this label, shifted and normalized. Low scores are doubtful labels.

    C. G. Northcutt, L. Jiang, I. L. Chuang. Confident learning: estimating uncertainty in dataset
    labels. Journal of Artificial Intelligence Research 70, 2021. doi:10.1613/jair.1.12125
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import xlogy

from ..base.arrays import Array, Floats
from ..errors import OptionError
from .label_sums import sum_by

Score = Literal["self_confidence", "normalized_margin", "confidence_weighted_entropy"]

_LEAST = 1e-6  # of divisors
_LEAST_CONFIDENCE = 2e-6  # of the mean confidence in a class
_ABSENT = 2.0  # confidence in a class without labels: above any probability


@dataclass(frozen=True)
class LabelScore:
    """A score of labels, with or without adjusted probabilities."""

    method: Score = "self_confidence"
    adjust_pred_probs: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> LabelScore:
        """Return the score that cleanlab's options describe."""
        unknown = [name for name in options if name not in cls.__dataclass_fields__]
        if unknown:
            raise OptionError(
                f"label_quality_score_kwargs has no {unknown[0]!r}; there are method, "
                "adjust_pred_probs"
            )
        score = cls(**options)
        if score.method not in get_args(Score):
            known = ", ".join(get_args(Score))
            raise OptionError(f"method = {score.method!r}, but it must be one of {known}")
        if score.adjust_pred_probs and score.method == "confidence_weighted_entropy":
            raise OptionError("confidence_weighted_entropy takes no adjusted probabilities")
        return score

    def __call__(
        self, posterior: Floats, row: Array, label: Array, group: Array, n_groups: int
    ) -> Floats:
        """Return the scores of labels of rows of a posterior; classes are adjusted by group.

        >>> p = np.array([[0.5, 0.25, 0.25]])
        >>> zero = np.array([0])
        >>> LabelScore("normalized_margin")(p, zero, zero, zero, 1).tolist()
        [0.625]
        """
        if self.method == "self_confidence" and not self.adjust_pred_probs:
            return posterior[row, label]
        chosen, n = posterior[row], np.arange(len(row))
        if self.adjust_pred_probs:
            chosen = _adjusted(chosen, label, group, n_groups)
        own = chosen[n, label]
        if self.method == "self_confidence":
            return own
        if self.method == "normalized_margin":
            chosen[n, label] = -np.inf
            return (own - chosen.max(axis=1, initial=-np.inf) + 1) / 2
        n_classes = chosen.shape[1]
        entropy = -xlogy(chosen, chosen).sum(axis=1) / np.log(max(n_classes, 2))
        weighted = entropy / np.maximum(own, _LEAST)
        return np.log(weighted + 1) / np.maximum(weighted, _LEAST)


def _adjusted(chosen: Floats, label: Array, group: Array, n_groups: int) -> Floats:
    """Return probabilities less the mean confidence of their group in every class."""
    n_classes = chosen.shape[1]
    cell = group * np.int64(n_classes) + label
    given = sum_by(cell, np.ones(len(label)), n_groups * n_classes)
    total = sum_by(cell, chosen[np.arange(len(label)), label], n_groups * n_classes)
    confidence = np.full(len(given), _ABSENT)
    np.divide(total, given, out=confidence, where=given > 0)
    confidence = np.maximum(confidence, _LEAST_CONFIDENCE).reshape(n_groups, n_classes)
    chosen = chosen - confidence[group] + confidence.max(axis=1)[group, None]
    return chosen / chosen.sum(axis=1, keepdims=True)
