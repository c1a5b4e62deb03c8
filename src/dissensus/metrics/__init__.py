"""How right predictions are where the truth is known, with an interval for every score."""

from __future__ import annotations

from .evaluation import Evaluation, Predictions, Score, Values, as_predictions, evaluate

__all__ = ["Evaluation", "Predictions", "Score", "Values", "as_predictions", "evaluate"]
