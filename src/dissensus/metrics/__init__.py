"""Scores of predictions against the truth, with bootstrap intervals."""

from __future__ import annotations

from .evaluation import Evaluation, Score, evaluate, evaluate_answers

__all__ = ["Evaluation", "Score", "evaluate", "evaluate_answers"]
