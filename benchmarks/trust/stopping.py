"""What the workbench states while a reviewer checks labels, and what is true.

On each gold set, a reviewer who knows the truth follows the queue to the last item, with a fit for
every twentieth of the items. What would have been stated anywhere on the way, under any spread of
the calibration of doubts, follows from that without another fit. The spread for a set is the one
with the best score of its intervals on all other sets.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dissensus import Annotations, aggregate
from dissensus.planning import DRAWN_EVERY, random_order
from dissensus.planning.label_errors import Checked, Spread, checked_errors, checks_needed

SEED, TARGET, COVERAGE = 0, 0.95, 0.9
SPREADS = [
    Spread(shift, slope, drift)
    for shift, slope, drift in itertools.product(
        (0.2, 0.3, 0.4), (0.1, 0.2, 0.3), (0, 0.7, 1, 1.4, 2)
    )
]
_LEAST = 0.003  # share of wrong labels, added before logarithms are taken


class Fitted(NamedTuple):
    """A fit, and the items that were checked while it was the newest."""

    n_before: int
    certainty: npt.NDArray[np.float64]  # (item)
    wrong: npt.NDArray[np.bool_]  # (item)
    checked: list[int]  # codes of items


class Stated(NamedTuple):
    """Shares of all items: those checked, and those wrong as stated and in truth."""

    checked: float
    expected: float
    low: float
    high: float
    true: float

    @property
    def holds(self) -> bool:
        """Whether the truth is inside the interval."""
        return self.low - 1e-9 <= self.true <= self.high + 1e-9

    @property
    def score(self) -> float:
        """The interval score of logarithms; lower is better."""
        low, high, true = np.log(np.array([self.low, self.high, self.true]) + _LEAST)
        outside = max(low - true, 0) + max(true - high, 0)
        return float(high - low + 2 / (1 - COVERAGE) * outside)


def follow(annotations: Annotations, truth: dict[str, str]) -> list[Fitted]:
    """Check all items as the queue gives them, a fit for every twentieth."""
    names = annotations.items.tolist()
    right = np.array([truth[item] for item in names], dtype=object)
    classes, at_random = set(annotations.classes.tolist()), iter(random_order(names, SEED).tolist())
    seen, gold, fits = np.zeros(len(names), dtype=bool), {}, []
    while not seen.all():
        result = aggregate(annotations, gold=gold or None, seed=SEED)
        certainty = result.posterior.max(axis=1)
        least_first = iter(np.argsort(certainty, kind="stable").tolist())
        one = Fitted(int(seen.sum()), certainty, result.labels != right, [])
        for _ in range(min(max(len(names) // 20, 10), int((~seen).sum()))):
            drawn = (seen.sum() + 1) % DRAWN_EVERY == 0
            code = next(k for k in (at_random if drawn else least_first) if not seen[k])
            seen[code] = True
            one.checked.append(code)
            if right[code] in classes:
                gold[names[code]] = right[code]
        fits.append(one)
    return fits


def stated(fits: list[Fitted], spread: Spread, steps: int = 1) -> Iterator[Stated]:
    """Yield what is stated on the way, so many times per fit."""
    n_items = len(fits[0].certainty)
    doubt, wrong = np.zeros(0), np.zeros(0, dtype=bool)
    left = np.ones(n_items, dtype=bool)
    for fit in fits:
        for some in np.array_split(np.array(fit.checked), steps):
            if len(doubt) and left.any():
                errors = checked_errors(fit.certainty[left], Checked(doubt, wrong), spread)
                shares = np.array([len(doubt), errors.expected, errors.low, errors.high])
                yield Stated(*(shares / n_items).tolist(), float(fit.wrong[left].sum() / n_items))
            doubt = np.concatenate([doubt, 1 - fit.certainty[some]])
            wrong = np.concatenate([wrong, fit.wrong[some]])
            left[some] = False


def stop(fits: list[Fitted], spread: Spread) -> Stated:
    """Return what is stated where the target is first reached."""
    enough = checks_needed(TARGET) / len(fits[0].certainty)
    way = (one for one in stated(fits, spread, 10) if one.checked >= enough)
    reached = (one for one in way if one.high <= 1 - TARGET)
    return next(reached, Stated(1, 0, 0, 0, 0))


def chosen_without(scores: dict[Spread, dict[str, float]]) -> dict[str, Spread]:
    """Return, for each set, the spread with the best mean score on the others."""
    names = next(iter(scores.values())).keys()
    return {
        name: min(scores, key=lambda s: np.mean([v for k, v in scores[s].items() if k != name]))
        for name in names
    }
