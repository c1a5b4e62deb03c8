"""What to label next, by whom, and when to stop: policies, one file each, and the plan."""

from __future__ import annotations

from .curve import Curve, Gap, Point
from .planner import Plan, plan

__all__ = ["Curve", "Gap", "Plan", "Point", "plan"]
