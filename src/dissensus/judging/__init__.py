"""Models as annotators: whom they may replace, the true rate, and what a panel is worth."""

from __future__ import annotations

from .mixed import Mixed, mixed
from .judges import Escalation, escalate
from .judges import Judge, judges
from .judging import Judging, judge
from .pair_biases import PairBias, pair_biases
from .panel import PanelWorth, panel
from .judging import plan
from .pool import Pooled, pool
from .replacement import Replacement, ReplacementTest, replacement
from .requirements import Requirement, check_requirement
from .transport import Transported, periods, transport
from .transport import Difference, true_difference
from .true_mean import Mean, true_mean
from .true_shares import Share, true_shares

__all__ = [
    "Difference",
    "Escalation",
    "Judge",
    "Judging",
    "Mean",
    "Mixed",
    "PairBias",
    "PanelWorth",
    "Pooled",
    "Replacement",
    "ReplacementTest",
    "Requirement",
    "Share",
    "Transported",
    "check_requirement",
    "escalate",
    "judge",
    "judges",
    "mixed",
    "pair_biases",
    "panel",
    "periods",
    "plan",
    "pool",
    "replacement",
    "transport",
    "true_difference",
    "true_mean",
    "true_shares",
]
