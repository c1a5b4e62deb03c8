"""Models of individual annotators, to predict what each of them would say.

One file per method; `TendencyClassifier` is the estimator.
"""

from __future__ import annotations

from .base import FitOptions, Tendency, TendencyMethod

__all__ = ["FitOptions", "Tendency", "TendencyMethod"]
