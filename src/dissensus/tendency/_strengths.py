"""How strongly annotators are drawn together: chosen by annotations on items held out.

Items are cut into folds. Under every trial the heads are fitted without a fold and foresee the
annotations on it; the trial with the least log-loss wins. Trials go part by part: first the space
and what all share, then bias, slope, what is known of annotators and heads of their own. "Off" is
among the trials of every part but the first, and a spread that wins at the end of its grid is
doubled while that helps. What the best trial foresees is kept, so that a pool of models can weigh
it beside others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax

from .._relation import Floats, Integers
from ..annotations import Annotations
from ._base import Progress
from ._components import Space, find_components
from ._shrunk import Pairs, Spreads, fit_shrunk
from ._views import Views

__all__ = ["CrossFit", "Trial", "deal", "log_loss", "search"]

_MOST = 32.0  # the largest spread that is tried


class Trial(NamedTuple):
    """A space, and spreads in it."""

    space: Space
    spreads: Spreads

    def to(self, part: str, spread: float) -> Trial:
        """Return the trial with another spread of a part."""
        changed: dict[str, Any] = {part: spread}
        return Trial(self.space, self.spreads._replace(**changed))


def deal(annotations: Annotations, folds: int, seed: int) -> Integers:
    """Return the fold of every item, at random; as many as there are labelled items at most."""
    random = np.random.default_rng([seed, 0xF01D])
    folds = max(min(folds, int(np.count_nonzero(annotations.labels_per_item))), 2)
    rank = np.argsort(
        np.argsort(random.random(annotations.n_items) - 2.0 * (annotations.labels_per_item > 0))
    )
    return rank % folds


def log_loss(annotations: Annotations, log_probability: Floats) -> float:
    """Return the mean negative log-likelihood of labels, whatever the order of annotations."""
    return -math.fsum(log_probability[np.arange(len(annotations)), annotations.label]) / max(
        len(annotations), 1
    )


class _Fold(NamedTuple):
    pairs: Pairs
    held: Any  # (annotation): whether held out
    x: Floats  # (item, component)


@dataclass(eq=False)
class CrossFit:
    """What trials foresee of annotations that they have not seen.

    Components, pairs and the last fit of every fold are kept: the next trial begins there.
    """

    views: Views
    annotations: Annotations
    known: Floats | None
    ordinal: bool
    most: int  # components
    folds: int
    seed: int
    _folds: dict[Space, list[_Fold]] = field(default_factory=dict)
    _last: dict[Any, dict[str, Floats]] = field(default_factory=dict)
    _losses: dict[Trial, float] = field(default_factory=dict)
    _kept: dict[Trial, Floats] = field(default_factory=dict)

    def foreseen(self, trial: Trial) -> Floats:
        """Return log-probabilities out of fold: (annotation, class)."""
        if trial in self._kept:
            return self._kept[trial]
        out = np.empty((len(self.annotations), self.annotations.n_classes))
        for position, (pairs, held, x) in enumerate(self._cut(trial.space)):
            key = (trial.space, position)
            fit = fit_shrunk(pairs, trial.spreads, start=self._last.get(key))
            self._last[key] = fit.parts
            item, annotator = self.annotations.item[held], self.annotations.annotator[held]
            out[held] = log_softmax(fit.heads.logits(x, item, annotator), axis=1)
        return out

    def loss(self, trial: Trial) -> float:
        """Return the mean log-loss out of fold."""
        if trial not in self._losses:
            self._kept[trial] = self.foreseen(trial)
            self._losses[trial] = log_loss(self.annotations, self._kept[trial])
        return self._losses[trial]

    def best(self, trials: Sequence[Trial]) -> Trial:
        """Return the trial with the least log-loss; what the others foresaw is forgotten."""
        found = min(trials, key=self.loss)
        for lost in set(trials) - {found}:
            self._kept.pop(lost, None)
        return found

    def _cut(self, space: Space) -> list[_Fold]:
        if space not in self._folds:
            fold = deal(self.annotations, self.folds, self.seed)
            self._folds[space] = [self._without(fold == each, space) for each in np.unique(fold)]
        return self._folds[space]

    def _without(self, left_out: Any, space: Space) -> _Fold:
        held = left_out[self.annotations.item]
        seen = np.flatnonzero(~left_out)
        found = find_components(self.views.vectors[seen], self.most, space, self.seed)
        x = found.of(self.views)
        pairs = Pairs.of(x, self.annotations.keep(~held), known=self.known, ordinal=self.ordinal)
        return _Fold(pairs, held, x)


def search(
    cross: CrossFit, start: Trial, grid: dict[str, Sequence[Any]], progress: Progress
) -> Trial:
    """Return the best trial, going through the grid part by part.

    Parameters
    ----------
    cross
        What trials foresee.
    start
        Where to begin.
    grid
        What to try of every part, in order; of `space` all spaces.
    progress
        Called after every part.
    """
    now = start
    for done, (part, values) in enumerate(grid.items()):
        if part == "space":
            now = cross.best([Trial(space, now.spreads) for space in values])
        else:
            now = cross.best([now.to(part, each) for each in values])
            while getattr(now.spreads, part) >= max(values):  # at the end of the grid: go on
                more = now.to(part, 2 * getattr(now.spreads, part))
                if getattr(more.spreads, part) > _MOST or cross.best([now, more]) == now:
                    break
                now = more
        progress(done + 1, len(grid), f"{part}, held-out log-loss {cross.loss(now):.4f}")
    return now
