"""Whom to ask about what, and when to stop: a plan for people that knows what models predict."""

from __future__ import annotations

from typing import Any

from ..planning import Plan
from ..planning import plan as plan_labels
from .mixed import Mixed
from .pool import Pooled


def plan(data: Mixed, pooled: Pooled, *, budget: float, **settings: Any) -> Plan:
    """Return which labels to request of which people; settings as those of `dissensus.plan`."""
    settings.setdefault("policy", "active-lab")
    settings.setdefault("draws", 0)
    return plan_labels(data.people, budget=budget, probabilities=pooled.predicted, **settings)
