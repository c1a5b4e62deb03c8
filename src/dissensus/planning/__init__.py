"""What to label next, by whom, and when to stop: a plan, and policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..answers import KINDS
from ..dispatch import by_kind
from ..formats.coerce import as_answers
from .answers import AnswerPlan, plan_on_answers
from .curve import Curve, Point
from .label_errors import DRAWN_EVERY, Review, errors_left, plan_review, random_order
from .planner import Plan, plan_labels

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..aggregation.aggregation import ClassAggregation
    from .policies import Policy

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


@by_kind(read=as_answers)
def plan(
    answers: Any,
    result: ClassAggregation | None = None,
    *,
    budget: float,
    policy: str | Policy = "joint",
    cost: float | Mapping[Any, float] | None = None,
    limit: int | Mapping[Any, int] | None = None,
    per_item: int | None = None,
    batch: int | None = None,
    annotators: Iterable[Any] | None = None,
    truth: Any = None,
    available: Any = None,
    probabilities: npt.ArrayLike | None = None,
    target: float = 0.95,
    min_gain: float | None = None,
    draws: int = 10,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Return which labels to request next, of which annotators, and whether to stop.

    Settings are those of `plan_labels`; of answers of other kinds than classes, items are chosen,
    by `budget` and `per_item` alone.
    """
    raise NotImplementedError


plan.for_kind("classes", "numbers")(plan_labels)
plan.for_kind(*KINDS)(plan_on_answers)
