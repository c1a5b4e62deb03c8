"""Which items people should check.

The judges' prediction s of a person's label, learned from a random seed of human labels, is least
sure where max_c s_i(c) is lowest: people are asked about these items first, and the pool labels
them. What the answer of one person about item i adds is taken as

    Σ_c s_i(c) max_c' ([c = c'] + s_i(c')) / 2 - max_c s_i(c)

as if the judges counted for one person. They often count for more, but their predictions are
learned again from the new labels, so that an answer also helps other items. A tenth of what people
label is chosen at random instead, and only these labels are a random sample for estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..base.names import Names
from ..base.arrays import Floats, Integers
from .mixed import Mixed
from .pool import Pooled

MIN_SEED = 50  # items that people labelled, chosen at random
SHORTCUT = 0.8  # beyond this share of the items there is no short cut
_ENOUGH = 0.9  # of the gain of asking about everything
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
        What a person's answer adds.
    gained
        The share of the gain of asking about all, with the first k of them asked, k = 0 … all:
        (item + 1).
    enough
        How many of them have 90 % of the gain of all.
    chosen, audit
        Positions of items within the budget, and which of them were chosen at random.
    n_seed
        Items that people labelled.
    """

    items: Names
    doubt: Floats
    gain: Floats
    gained: Floats
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
    s = pooled.predicted[free]
    top = s.max(axis=1)
    gain = np.maximum(_asked(s) - top, 0)
    order = np.lexsort((free, top.round(12)))
    free, top, gain = free[order], top[order], gain[order]
    upto, total = np.concatenate([[0.0], np.cumsum(gain)]), float(gain.sum())
    gained = upto / total if total > 0 else np.ones(len(upto))
    enough = int(np.searchsorted(gained, _ENOUGH))
    count = min(enough if budget is None else budget, len(free))
    chosen, audit = _with_audit(len(free), count, seed)
    items = data.people.items[free]
    return Escalation(items, 1 - top, gain, gained, enough, chosen, audit, int(data.known.sum()))


def _asked(s: Floats) -> Floats:
    """Return the expected probability of the label after one answer: (item)."""
    out = np.zeros(len(s))
    for label in range(s.shape[1]):
        after = s.copy()
        after[:, label] += 1
        out += s[:, label] * after.max(axis=1) / 2
    return out


def _with_audit(n_items: int, count: int, seed: int) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return positions: the first ones, and a tenth of the count at random from all."""
    n_random = math.ceil(_AUDIT * count) if count < n_items else 0
    drawn = np.random.default_rng(seed).permutation(n_items)[:n_random]
    rest = np.setdiff1d(np.arange(n_items), drawn)[: count - n_random]
    chosen = np.union1d(drawn, rest)
    everything = count >= n_items
    return chosen, np.isin(chosen, drawn) | everything
