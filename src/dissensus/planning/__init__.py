"""What to label next, by whom, and when to stop: a plan, and policies."""

from __future__ import annotations

from .answers import plan_items as plan_items
from .curve import Curve, Point
from .label_errors import DRAWN_EVERY, Review, errors_left, plan_review, random_order
from .planner import Plan, plan

__all__ = [
    "DRAWN_EVERY",
    "Curve",
    "Plan",
    "Point",
    "Review",
    "errors_left",
    "plan",
    "plan_review",
    "random_order",
]
