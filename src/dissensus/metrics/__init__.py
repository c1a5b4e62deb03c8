"""Scores of predictions against the truth, with bootstrap intervals."""

from __future__ import annotations

from .evaluation import Evaluation, Score, evaluate, evaluate_answers
from .scores import annotator_errors, multilabel_error_rate, multilabel_manhattan, ranks

__all__ = [
    "Evaluation",
    "Score",
    "annotator_errors",
    "evaluate",
    "evaluate_answers",
    "multilabel_error_rate",
    "multilabel_manhattan",
    "ranks",
]
