"""MACE (Hovy et al. 2013): annotators know the truth or make something up.

Annotator a knows the truth of an item with probability `competence[a]` and says it; otherwise the
label is drawn from `habit[a]`, which does not look at the item. So a label that everybody gives
all the time means little. A round costs the same for every annotation however many classes there
are. Variational Bayes keeps a Beta and a Dirichlet for every annotator and climbs the evidence
lower bound; EM keeps points and climbs the smoothed likelihood.

    D. Hovy, T. Berg-Kirkpatrick, A. Vaswani, E. Hovy. Learning whom to trust with MACE.
    NAACL-HLT, 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from scipy.special import betaincinv

from .._relation import Floats, Integers
from ..annotations import Annotations, Part
from ..params import NonNegative, Positive
from ._dirichlet import expected_logs, minus_divergence
from ._em import EMAggregator, Expected, logs, share

__all__ = ["Habits", "Mace", "Tally"]

_LEAST = -690.0  # no label is less probable than this, in logarithms


class Habits(NamedTuple):
    """What MACE learns: counts, with those of the prior, and how common the classes are."""

    known: Floats  # (annotator, 2): labels that were known, labels that were made up
    made_up: Floats  # (annotator, given class)
    prior: Floats  # (true class)

    @property
    def competence(self) -> Floats:
        """How probably every annotator knows the truth: (annotator)."""
        return share(self.known)[:, 0]

    @property
    def habit(self) -> Floats:
        """What annotators say who do not know: (annotator, given class)."""
        return share(self.made_up)

    def reindex(self, indices: Integers, n_items: int) -> Habits:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        known, made_up = (
            np.concatenate([counts, counts.mean(axis=0, keepdims=True)])[indices]
            for counts in (self.known, self.made_up)
        )
        return Habits(known, made_up, self.prior)


class Tally(NamedTuple):
    """What it learns from, expected under the posterior; adds up over parts of the items."""

    true: Floats  # (true class)
    known: Floats  # (annotator)
    made_up: Floats  # (annotator, given class)


@dataclass(frozen=True, kw_only=True)
class Mace(EMAggregator[Habits, Tally]):
    """Who knows and who makes it up, by variational Bayes or EM.

    Parameters
    ----------
    method
        `vb`, variational Bayes, or `em`.
    prevalence
        Whether classes are equally common (`uniform`) or as common as they are found (`estimated`).
        Where one class is rare, `uniform` may take it for somebody's habit.
    smoothing
        For `em`: pseudo-count of all classes of a habit together; a label that is known and one
        that is made up count as much as one class.
    known_prior
        For `vb`: pseudo-count of a label that is known, and of one that is made up.
    habit_prior
        For `vb`: pseudo-count of every class in a habit.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbbcccddd", "xyz" * 4, "010110010111")
    >>> result = Mace().fit(annotations)
    >>> result.labels.tolist()
    ['0', '1', '0', '1']
    >>> result.params.competence.round(1).tolist()
    [0.8, 0.1, 0.6]
    """

    learns: ClassVar[type] = Habits

    method: Literal["vb", "em"] = "vb"
    prevalence: Literal["uniform", "estimated"] = "uniform"
    smoothing: NonNegative = 0.01
    known_prior: Positive = 0.5
    habit_prior: Positive = 10.0

    def log_joint(self, part: Part, params: Habits) -> Floats:
        return _joint(part, params.prior, *self._weights(part, params))

    def expect(self, part: Part, params: Habits) -> Expected:
        truly, made_up = self._weights(part, params)
        joint = _joint(part, params.prior, truly, made_up)
        evidence, posterior = self.weigh(joint, part.allowed)
        posterior[part.blank] = 0.0
        return Expected(evidence, _tally(part, posterior, truly / (truly + made_up)))

    def counts(self, part: Part, posterior: Floats) -> Tally:
        """Return counts for a start: as many know as not, and habits have no favourites."""
        return _tally(part, posterior, part.n_classes / (part.n_classes + 1))

    def update(self, counts: Tally, last: Habits | None) -> Habits:
        known_base, habit_base = self._base(len(counts.true))
        all_made_up = counts.made_up.sum(axis=1)
        known = np.stack([counts.known, all_made_up], axis=1) + known_base
        flat = self.prevalence == "uniform"
        prior = share(np.ones_like(counts.true) if flat else counts.true)
        return Habits(known, counts.made_up + habit_base, prior)

    def log_prior(self, params: Habits) -> float:
        known_base, habit_base = self._base(len(params.prior))
        if self.method == "vb":
            known = minus_divergence(params.known, np.array(known_base))
            return known + minus_divergence(params.made_up, np.array(habit_base))
        log_known, log_habit = logs(share(params.known)), logs(share(params.made_up))
        return float(known_base * log_known.sum() + habit_base * log_habit.sum())

    def quality(self, params: Habits, agreement: Floats) -> Floats:
        """Return the probability of being right, knowing or by luck."""
        return _right(params, params.competence)

    def interval(self, params: Habits, level: float) -> Floats | None:
        if self.method == "em":
            return None
        tail = np.array([(1 - level) / 2, (1 + level) / 2])
        ends = betaincinv(params.known[:, :1], params.known[:, 1:], tail)  # (annotator, 2)
        return np.stack([_right(params, end) for end in ends.T], axis=1)

    def confusion(self, params: Habits) -> Floats:
        competence = params.competence[:, None, None]
        return competence * np.eye(len(params.prior)) + (1 - competence) * params.habit[:, None]

    def n_numbers(self, annotations: Annotations) -> int:
        return super().n_numbers(annotations) + 3 * annotations.n_annotators * annotations.n_classes

    def _base(self, n_classes: int) -> tuple[float, float]:
        if self.method == "vb":
            return self.known_prior, self.habit_prior
        return self.smoothing / n_classes, self.smoothing / n_classes

    def _weights(self, part: Part, params: Habits) -> tuple[Floats, Floats]:
        """Return how probable every label is if it is known and true, and if it is made up."""
        log = expected_logs if self.method == "vb" else _log_share
        known, habit = log(params.known), log(params.made_up)  # expected logs, or logs
        made_up = np.maximum(known[:, 1:] + habit, _LEAST)
        return np.exp(known[part.annotator, 0]), np.exp(made_up[part.annotator, part.label])


def _joint(part: Part, prior: Floats, truly: Floats, made_up: Floats) -> Floats:
    joint = part.score(np.log1p(truly / made_up))
    joint += part.by_item(np.log(made_up))[:, None]
    joint += logs(prior)
    return joint


def _tally(part: Part, posterior: Floats, knows: Floats | float) -> Tally:
    """Return counts; `knows` is how probably a label is known if it is true."""
    known = part.given_posterior(posterior) * knows
    cell = part.annotator.astype(np.intp) * part.n_classes + part.label
    made_up = np.bincount(cell, 1 - known, minlength=part.n_annotators * part.n_classes)
    return Tally(
        np.einsum("it->t", posterior),
        part.by_annotator(known),
        made_up.astype(float).reshape(part.n_annotators, part.n_classes),
    )


def _right(params: Habits, competence: Floats) -> Floats:
    return competence + (1 - competence) * (params.habit @ params.prior)


def _log_share(counts: Floats) -> Floats:
    return logs(share(counts))
