"""Choose priors of `_shrunk` by cross-validation over items.

Items are split into folds. For every candidate, heads are fitted without a fold and predict the
annotations on it; the candidate with the lowest log-loss wins. Settings are searched one at a time:
kernel and shared prior first, then bias, slope, metadata and heads of annotators. "Off" is a
candidate for all but the first, and a value that wins at the end of its grid is doubled while that
helps. Held-out predictions of the best candidates are kept, so that a pool can weight them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax

from ...base.progress import Progress
from ...base.arrays import Array
from ...base.time_limit import out_of_time
from ...answers.annotations import Annotations, Floats, Integers
from ..nn.features import Features
from .components import Kernel, fit_components
from .pairs import Pairs
from .shrunk import Priors, fit_shrunk

_TOL, _STEPS = 1e-5, 60  # of fits that are compared: held-out losses show no more
_MOST = 32.0  # largest prior standard deviation


class Candidate(NamedTuple):
    """A kernel and priors."""

    kernel: Kernel
    priors: Priors

    def with_prior(self, name: str, value: float) -> Candidate:
        """Return the candidate with another value of a prior."""
        changed: dict[str, Any] = {name: value}
        return Candidate(self.kernel, self.priors._replace(**changed))


def random_folds(annotations: Annotations, folds: int, seed: int) -> Integers:
    """Return the fold of every item, at random; at most as many as there are labelled items."""
    random = np.random.default_rng([seed, 0xF01D])
    labelled = annotations.labels_per_item > 0
    folds = max(min(folds, int(np.count_nonzero(labelled))), 2)
    rank = np.argsort(np.argsort(random.random(annotations.n_items) - 2.0 * labelled))
    return rank % folds


class _Fold(NamedTuple):
    pairs: Pairs  # of the other folds
    held: Any  # (annotation): whether it is held out
    x: Array  # (held-out item, component)
    item: Integers  # (held-out annotation): row of its item in x


@dataclass(eq=False)
class CrossValidation:
    """Held-out predictions of candidates.

    Components, data and the last fit of every fold are cached: the next fit starts there.
    """

    features: Features
    annotations: Annotations
    metadata: Floats | None
    ordinal: bool
    n_components: int
    folds: int
    seed: int
    _folds: dict[Kernel, list[_Fold]] = field(default_factory=dict)
    _last: dict[Any, dict[str, Floats]] = field(default_factory=dict)
    _losses: dict[Candidate, float] = field(default_factory=dict)
    _predictions: dict[Candidate, Floats] = field(default_factory=dict)

    def predict(self, candidate: Candidate) -> Floats:
        """Return held-out log-probabilities: (annotation, class)."""
        if candidate in self._predictions:
            return self._predictions[candidate]
        annotations = self.annotations
        out = np.empty((len(annotations), annotations.n_classes))
        for index, fold in enumerate(self._split(candidate.kernel)):
            key = (candidate.kernel, index)
            start = self._last.get(key)
            fit = fit_shrunk(fold.pairs, candidate.priors, start=start, tol=_TOL, max_iter=_STEPS)
            self._last[key] = fit.parts
            logits = fit.heads.logits(fold.x, fold.item, annotations.annotator[fold.held])
            out[fold.held] = log_softmax(logits, axis=1)
        return out

    def loss(self, candidate: Candidate) -> float:
        """Return the mean held-out log-loss."""
        if candidate not in self._losses:
            log = self._predictions[candidate] = self.predict(candidate)
            given = log[np.arange(len(self.annotations)), self.annotations.label]
            # An exact sum: no order of annotations matters.
            self._losses[candidate] = -math.fsum(given) / max(len(given), 1)
        return self._losses[candidate]

    def best(self, candidates: Sequence[Candidate]) -> Candidate:
        """Return the candidate with the lowest log-loss; predictions of the others are dropped.

        Out of time, those that have not been tried are left out.
        """
        tried = {each for each in candidates if each in self._losses}
        for each in candidates:
            if not tried or (each not in tried and not out_of_time()):
                self.loss(each)
                tried.add(each)
        best = min((each for each in candidates if each in tried), key=self.loss)
        for other in set(candidates) - {best}:
            self._predictions.pop(other, None)
        return best

    def _split(self, kernel: Kernel) -> list[_Fold]:
        if kernel not in self._folds:
            fold = random_folds(self.annotations, self.folds, self.seed)
            self._folds[kernel] = [self._fold(fold == each, kernel) for each in np.unique(fold)]
        return self._folds[kernel]

    def _fold(self, held_items: Any, kernel: Kernel) -> _Fold:
        learned, there = np.flatnonzero(~held_items), np.flatnonzero(held_items)
        vectors = self.features.vectors
        components, x = fit_components(vectors[learned], self.n_components, kernel, self.seed)
        pairs = Pairs.of(
            x, self.annotations.take(learned), metadata=self.metadata, ordinal=self.ordinal
        )
        held = held_items[self.annotations.item]
        item = np.searchsorted(there, self.annotations.item[held])
        return _Fold(pairs, held, components.of(Features(vectors[there])), item)


def search(
    validation: CrossValidation,
    start: Candidate,
    grid: dict[str, Sequence[Any]],
    progress: Progress,
) -> Candidate:
    """Return the best candidate, searching the grid one setting at a time.

    Parameters
    ----------
    validation
        Scores candidates.
    start
        Where to start.
    grid
        Values of every setting, in order; `kernel` or a prior.
    progress
        Called after every setting.
    """
    best = start
    for done, (name, values) in enumerate(grid.items()):
        if done and out_of_time():
            break
        if name == "kernel":
            best = validation.best([best._replace(kernel=kernel) for kernel in values])
        else:
            best = validation.best([best.with_prior(name, value) for value in values])
            while getattr(best.priors, name) >= max(values):  # at the end of the grid
                larger = best.with_prior(name, 2 * getattr(best.priors, name))
                if getattr(larger.priors, name) > _MOST or validation.best([best, larger]) == best:
                    break
                best = larger
        message = f"{name}, held-out log-loss {validation.loss(best):.4f}"
        progress(done + 1, len(grid), message)
    return best
