"""Scores of predictions against the truth, with bootstrap intervals."""

from __future__ import annotations

from .evaluation import Evaluation, Score, evaluate
from .lewidi import annotator_errors, multilabel_error_rate, multilabel_manhattan, ranks

__all__ = [
    "Evaluation",
    "Score",
    "annotator_errors",
    "evaluate",
    "multilabel_error_rate",
    "multilabel_manhattan",
    "ranks",
]
