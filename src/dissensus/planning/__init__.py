"""What to label next, by whom, and when to stop: a plan, and policies."""

from __future__ import annotations

from typing import Any, overload

from ..answers import Answers
from .answers import AnswerPlan, plan_on_answers
from .curve import Curve, Point
from .label_errors import DRAWN_EVERY, Review, errors_left, plan_review, random_order
from .planner import Plan, plan_labels

__all__ = [
    "DRAWN_EVERY",
    "AnswerPlan",
    "Curve",
    "Plan",
    "Point",
    "Review",
    "errors_left",
    "plan",
    "plan_labels",
    "plan_on_answers",
    "plan_review",
    "random_order",
]


@overload
def plan(annotations: Answers, **settings: Any) -> AnswerPlan: ...


@overload
def plan(annotations: Any, result: Any = ..., **settings: Any) -> Plan: ...


def plan(annotations: Any, result: Any = None, **settings: Any) -> Plan | AnswerPlan:
    """Return which labels to request next, of which annotators, and whether to stop.

    Answers of other kinds than classes and numbers go to `plan_on_answers`, which chooses items;
    everything else to `plan_labels`. Both take `budget` and `per_item`.
    """
    if isinstance(annotations, Answers):
        return plan_on_answers(annotations, **settings)
    return plan_labels(annotations, result, **settings)
