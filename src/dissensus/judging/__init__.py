"""Models as annotators: whom they may replace, the true rate, and what a panel is worth.

A question is a file with its function and its result; `judging` asks all of them, `sentences` and
`sections` show what comes out.
"""

from __future__ import annotations

from .judges import Escalation, Judge, escalate, judges
from .judging import Judging, judge, plan
from .mixed import Mixed, mixed
from .pair_biases import PairBias, pair_biases
from .panel import PanelWorth, panel
from .pool import Pooled, pool
from .replacement import Replacement, ReplacementTest, replacement
from .requirements import Requirement, check_requirement
from .transport import Difference, Transported, periods, transport, true_difference
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
