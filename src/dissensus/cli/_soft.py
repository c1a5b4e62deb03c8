"""How scores of shares are shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..recovery.evaluation import SoftEvaluation

__all__ = ["print_soft", "soft_row"]

_WORDS = {
    "manhattan": "Manhattan distance",
    "jensen_shannon": "Jensen-Shannon divergence (bits)",
    "unbiased_squared": "squared distance, unbiased",
    "cross_entropy": "cross-entropy (nats)",
    "kl": "Kullback-Leibler (nats)",
    "wasserstein": "Wasserstein distance (steps)",
    "entropy_gap": "distance of entropies (bits)",
    "entropy_pearson": "correlation of entropies",
    "entropy_spearman": "… of their ranks",
    "calibration_error": "calibration error",
    "perspectivist_error": "error against everybody",
    "accuracy": "accuracy against the majority",
    "macro_f1": "macro F1 against the majority",
}
_ROW = {
    "Manh. dist.": "manhattan",
    "JSD bits": "jensen_shannon",
    "sq. unb.": "unbiased_squared",
    "cross entr.": "cross_entropy",
    "entr. corr.": "entropy_pearson",
    "accu- racy": "accuracy",
    "macro F1": "macro_f1",
}


def soft_row() -> dict[str, str]:
    """Return short heads of the scores that a table with one row per method has room for."""
    return _ROW


def print_soft(found: SoftEvaluation) -> None:
    """Print scores beside floor and ceiling."""
    from rich.console import Console
    from rich.table import Table

    per_item = f"{found.votes_per_item:.1f}"
    table = Table(
        "score", "value", "95 % interval", "one for\nall", "people\nagain",
        title=f"{found.n_items} items scored, {per_item} votes each",
    )  # fmt: skip
    for name, words in _WORDS.items():
        if name not in found.scores:
            continue
        score = found.scores[name]
        low, high = (f"{bound:.4f}" for bound in score[1:])
        interval = "" if math.isnan(score.low) else f"{low} to {high}"
        cells = (score.value, found.floor[name], found.ceiling[name])
        value, floor, ceiling = ("–" if math.isnan(each) else f"{each:.4f}" for each in cells)
        table.add_row(words, value, interval, floor, ceiling)
    console = Console()
    console.print(table)
    for count, told in (
        (found.n_without_votes, "predicted items have no annotations"),
        (found.n_without_prediction, "annotated items have no prediction"),
    ):
        if count:
            console.print(f"{count} {told}", highlight=False)
