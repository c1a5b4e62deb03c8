"""Existence: whether a candidate that somebody marked is an object or clutter.

A candidate exists only because somebody marked it, so errors do not look like errors of a class.
The states of a candidate are clutter, and objects of several visibilities v:

    object v   annotator j marks it with probability found[j, v]
    clutter    one annotator marked it, j with probability clutter[j] among those who looked, and
               every other marks the same spot by coincidence

`found` has a Beta prior around the mean of all annotators at that visibility, which is fitted with
it; `clutter` has a Gamma prior. EM raises the objective in every iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from annotated_types import Interval
from scipy.special import betaln

from ..answers.annotations import Part
from ..base.arrays import Floats, Integers
from ..base.probability import label_temperature, log_normalize, normalize, safe_log
from ..params import Positive, Probability
from .em import EM, Expected

Levels = Annotated[int, Interval(ge=1, le=5)]
EXISTENCE = "objects"  # the name of the model in results
NO, YES = 0, 1  # the classes
_START, _MIDDLE = (0.3, 0.9), 0.6  # of `found`, before anything is learned
_LIMITS = (0.001, 0.999)  # of the mean of `found`
_SCALE = 2.0  # of the temperature: clutter is a state of its own, so the posterior is less sure
_TINY = 1e-300


class Visibility(NamedTuple):
    """What the model learns."""

    share: Floats  # (state): clutter, then objects by visibility
    found: Floats  # (annotator, visibility)
    clutter: Floats  # (annotator), summing to one
    mean: Floats  # (visibility): of `found`


class Counts(NamedTuple):
    """What it learns from, expected under the posterior; adds up over parts of the candidates."""

    share: Floats  # (state)
    by_answer: Floats  # (annotator and answer, visibility)
    drawn: Floats  # (annotator): clutter that they marked first
    exposure: Floats  # (annotator): clutter that they could have marked first


@dataclass(frozen=True, kw_only=True)
class Existence(EM[Visibility, Counts]):
    """Whether candidates exist, from whether annotators marked them.

    Parameters
    ----------
    levels
        Number of visibilities of objects.
    strength
        Pseudo-counts of every annotator's probability to find objects of a visibility.
    coincidence
        Probability that a further annotator marks the same clutter.
    """

    params_type: ClassVar[type] = Visibility
    max_classes: ClassVar[int | None] = 2

    levels: Levels = 2
    strength: Positive = 5.0
    coincidence: Probability = 0.02

    @property
    def spec(self) -> str:
        return EXISTENCE

    def log_joint(self, part: Part, params: Visibility) -> Floats:
        log_found = np.stack([np.log1p(-params.found), np.log(params.found)], axis=1)
        objects = part.labels @ log_found.reshape(-1, self.levels)  # (candidate, visibility)
        return np.column_stack([self._log_clutter(part, params), objects]) + np.log(params.share)

    def _log_clutter(self, part: Part, params: Visibility) -> Floats:
        """Return the log probability of all answers to clutter: (candidate)."""
        marked = part.label == YES
        rate = params.clutter[part.annotator]
        n_marks, n_looked = part.by_item(marked * 1.0), part.by_item(part.ones)
        first_mark = safe_log(part.by_item(rate * marked)) - safe_log(part.by_item(rate))
        first_mark[n_marks == 0] = 0.0  # gold that nobody marked
        n_further = np.maximum(n_marks - 1, 0)
        n_unmarked = n_looked - np.maximum(n_marks, 1)
        return (
            first_mark
            + n_further * np.log(self.coincidence)
            + n_unmarked * np.log1p(-self.coincidence)
        )

    def e_step(self, part: Part, params: Visibility) -> Expected:
        evidence, posterior = self.normalize_joint(self.log_joint(part, params), part.allowed)
        posterior[part.blank] = 0.0
        marked, rate = part.label == YES, params.clutter[part.annotator]
        clutter = posterior[:, 0][part.item]
        drawn = clutter * rate * marked / np.maximum(part.by_item(rate * marked), _TINY)[part.item]
        exposed = clutter / part.by_item(rate)[part.item]
        return Expected(
            evidence,
            Counts(
                posterior.sum(axis=0),
                part.labels.T @ posterior[:, 1:],
                part.by_annotator(drawn),
                part.by_annotator(exposed),
            ),
        )

    def normalize_joint(self, joint: Floats, allowed: Floats | float) -> tuple[float, Floats]:
        if isinstance(allowed, np.ndarray):
            allowed = allowed[:, [NO] + [YES] * self.levels]
        return log_normalize(joint, allowed)

    def part_posterior(self, part: Part, params: Visibility) -> Floats:
        _, state = self.normalize_joint(self.log_joint(part, params), part.allowed)
        return np.column_stack([state[:, 0], state[:, 1:].sum(axis=1)])

    def counts(self, part: Part, posterior: Floats) -> Counts:
        """Return counts of zero: the start does not depend on the answers."""
        n, v = part.n_annotators, self.levels
        return Counts(np.zeros(v + 1), np.zeros((2 * n, v)), np.zeros(n), np.zeros(n))

    def initial_counts(self, part: Part, posterior: Floats) -> Counts:
        return self.counts(part, posterior)

    def update(self, counts: Counts, last: Visibility | None) -> Visibility:
        n_annotators = len(counts.drawn)
        if last is None:
            start = np.linspace(*_START, self.levels) if self.levels > 1 else np.array([_MIDDLE])
            uniform = np.full(n_annotators, 1 / n_annotators)
            share = np.full(self.levels + 1, 1 / (self.levels + 1))
            return Visibility(share, np.tile(start, (n_annotators, 1)), uniform, start)
        missed, marked = counts.by_answer.reshape(n_annotators, 2, -1).swapaxes(0, 1)
        pooled = marked.sum(axis=0) / np.maximum((marked + missed).sum(axis=0), _TINY)
        choices = [
            self._found(marked, missed, mean) for mean in (last.mean, np.clip(pooled, *_LIMITS))
        ]
        raises = choices[1][2] >= choices[0][2]  # the pooled mean, unless that lowers the objective
        finding, mean = (
            np.where(raises, new, old) for old, new in zip(*(c[:2] for c in choices), strict=True)
        )
        rate = (counts.drawn + 1) / (counts.exposure + n_annotators)
        return Visibility(normalize(counts.share + 1), finding, normalize(rate), mean)

    def _found(self, marked: Floats, missed: Floats, mean: Floats) -> tuple[Floats, ...]:
        """Return `found` under a mean of its prior, that mean, and their expected objective."""
        s = self.strength
        finding = (marked + s * mean) / (marked + missed + s)
        gain = marked * np.log(finding) + missed * np.log1p(-finding)
        return finding, mean, (gain + self._log_beta(finding, mean)).sum(axis=0)

    def _log_beta(self, finding: Floats, mean: Floats) -> Floats:
        """Return the log prior density of `found`: (annotator, visibility)."""
        alpha, beta = self.strength * mean, self.strength * (1 - mean)
        return alpha * np.log(finding) + beta * np.log1p(-finding) - betaln(alpha + 1, beta + 1)

    def log_prior(self, params: Visibility) -> float:
        n_annotators = len(params.clutter)
        clutter = np.log(params.clutter).sum() - n_annotators * params.clutter.sum()
        finding = self._log_beta(params.found, params.mean).sum()
        return float(finding + clutter + np.log(params.share).sum())

    def quality(self, params: Visibility, agreement: Floats) -> Floats:
        return agreement

    def temperature(self, n_labels: Integers) -> Floats | None:
        return label_temperature(n_labels, _SCALE)
