"""Models of individual annotators, to predict what each of them would say.

`base` has what a method fulfils, `auto` the default, `classifier` the estimator around all methods;
a method is a class in the file of its family.
"""

from __future__ import annotations

from .base import FitOptions, Tendency, TendencyMethod

__all__ = ["FitOptions", "Tendency", "TendencyMethod"]
