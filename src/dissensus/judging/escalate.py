"""Which items people should check.

The judges' prediction s of a person's label, learned from a random seed of human labels, is least
sure where max_c s_i(c) is lowest: people are asked about these items first, and the pool labels
them. The gain of asking one person about item i, in the probability that another person agrees
with the label, follows from the pool itself:

    Σ_c s_i(c) max_c' ([c = c'] + w s_i(c')) / (1 + w) - max_c s_i(c)

It is zero where no single answer can overrule the judges. A tenth of what people label is chosen at
random instead, and only these labels are a random sample for estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._names import Names
from .._relation import Floats, Integers
from ._mixed import Mixed
from .pool import Pooled

MIN_SEED = 50  # items that people labelled, chosen at random
SHORTCUT = 0.8  # beyond this share of the items there is no short cut
_ENOUGH = 0.98  # of the gain of asking about everything
_AUDIT = 0.1


@dataclass(frozen=True, eq=False)
class Escalation:
    """The items that people should check, the most doubtful first.

    Attributes
    ----------
    items
        Names of the items without human labels, in order.
    doubt
        1 - max_c s_i(c).
    gain
        What a person's answer adds to the probability that the label is right.
    accuracy
        Expected agreement of the label with a person, with the first k of them asked, k = 0 … all:
        (item + 1).
    enough
        How many of them have 98 % of the gain of all.
    chosen, audit
        Positions of items within the budget, and which of them were chosen at random.
    n_seed
        Items that people labelled.
    """

    items: Names
    doubt: Floats
    gain: Floats
    accuracy: Floats
    enough: int
    chosen: Integers
    audit: npt.NDArray[np.bool_]
    n_seed: int

    @property
    def shortcut(self) -> bool:
        """Whether far fewer items than all do."""
        return self.enough <= SHORTCUT * len(self.items)

    @property
    def part(self) -> float:
        """How much of the gain of asking about everything the chosen items have."""
        total = float(self.gain.sum())
        return float(self.gain[self.chosen].sum()) / total if total > 0 else 1.0

    @property
    def table(self) -> dict[str, npt.NDArray[np.generic]]:
        """The items to check as columns: audit marks those that were chosen at random."""
        return {
            "item": self.items[self.chosen],
            "doubt": self.doubt[self.chosen],
            "audit": self.audit,
        }


def escalate(
    data: Mixed, pooled: Pooled, *, budget: int | None = None, seed: int = 0
) -> Escalation:
    """Return which items people should check, the most doubtful first.

    Without a budget, those that do nearly as much as all.
    """
    free = np.flatnonzero(~data.known & (data.n_judges > 0))
    s, w = pooled.predicted[free], pooled.worth
    top = s.max(axis=1)
    gain = np.maximum(_asked(s, w) - top, 0)
    order = np.lexsort((free, top.round(12)))
    free, top, gain = free[order], top[order], gain[order]
    accuracy = (top.sum() + np.concatenate([[0.0], np.cumsum(gain)])) / max(len(free), 1)
    upto, total = np.cumsum(gain), float(gain.sum())
    enough = int(np.searchsorted(upto, _ENOUGH * total) + 1) if total > 0 else 0
    count = min(enough if budget is None else budget, len(free))
    chosen, audit = _with_audit(len(free), count, seed)
    items = data.people.items[free]
    return Escalation(items, 1 - top, gain, accuracy, enough, chosen, audit, int(data.known.sum()))


def _asked(s: Floats, worth: float) -> Floats:
    """Return the expected probability of the pool's label after one answer: (item)."""
    out = np.zeros(len(s))
    for label in range(s.shape[1]):
        after = worth * s
        after[:, label] += 1
        out += s[:, label] * after.max(axis=1) / (1 + worth)
    return out


def _with_audit(n_items: int, count: int, seed: int) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return positions: the first ones, and a tenth of the count at random from all."""
    n_random = math.ceil(_AUDIT * count) if count < n_items else 0
    drawn = np.random.default_rng(seed).permutation(n_items)[:n_random]
    rest = np.setdiff1d(np.arange(n_items), drawn)[: count - n_random]
    chosen = np.union1d(drawn, rest)
    everything = count >= n_items
    return chosen, np.isin(chosen, drawn) | everything
