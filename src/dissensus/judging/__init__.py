"""Models as annotators: whom they may replace, the true rate, and what a panel is worth.

A question is a file with its function and its result, which has its sentences, tables, charts and
section; `judging` asks all of them, and `sections` makes a page of what comes out. It may import
all rooms from `planning` down. Another question is a file and a line in `Judging`.
"""

from __future__ import annotations

from .escalation import Escalation, escalate
from .judges import Judge, Judges, judges
from .judging import Judging, judge, plan
from .mixed import Mixed, mixed
from .pair_biases import PairBias, PairBiases, pair_biases
from .panel import PanelWorth, panel
from .pool import Pooled, pool
from .rates import Difference, Rates, rates, true_difference
from .replacement import Replacement, ReplacementTest, replacement
from .requirements import Requirement, check_requirement
from .transport import Transport, Transported, periods, transport
from .true_mean import Mean, true_mean
from .true_shares import Share, true_shares

__all__ = [
    "Difference",
    "Escalation",
    "Judge",
    "Judges",
    "Judging",
    "Mean",
    "Mixed",
    "PairBias",
    "PairBiases",
    "PanelWorth",
    "Pooled",
    "Rates",
    "Replacement",
    "ReplacementTest",
    "Requirement",
    "Share",
    "Transport",
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
    "rates",
    "replacement",
    "transport",
    "true_difference",
    "true_mean",
    "true_shares",
]
