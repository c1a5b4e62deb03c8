"""What to label next, by whom, and when to stop: a plan, and policies, one file each."""

from __future__ import annotations

from .curve import Curve, Point
from .planner import Plan, plan

__all__ = ["Curve", "Plan", "Point", "plan"]
