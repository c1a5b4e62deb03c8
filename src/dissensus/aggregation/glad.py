"""GLAD (Whitehill et al. 2009): able annotators are right, and easy items are labelled right.

Annotator a is right about item i with probability sigmoid(ability[a] · exp(log_easiness[i]));
all wrong classes are equally probable then. A negative ability is somebody who is wrong on
purpose. Both have a normal prior of deviation 1. EM finds them: given the belief in the truth,
abilities do not look at each other, nor do easinesses, so each of them takes Newton steps of its
own, halved until it gains. The objective, evidence plus prior, never falls.

    J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma, J. Movellan. Whose vote should count more: optimal
    integration of labels from labelers of unknown expertise. Advances in Neural Information
    Processing Systems 22, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from .._fixed_point import still
from .._relation import Floats, Integers
from ..annotations import Part
from ..engine import add
from ._alternating import AlternatingAggregator, Reached, expected, first_posterior
from ._base import Fit, first_best, share
from ._climb import Slopes, climb, logistic, pull, slopes
from ._em import logs, normalise

__all__ = ["Abilities", "Glad"]

_ALTERNATIONS = 2  # Newton steps of both kinds in every round


class Abilities(NamedTuple):
    """What GLAD learns."""

    ability: Floats  # (annotator)
    log_easiness: Floats  # (item)
    typical: Floats  # (): the mean log easiness of items that have labels
    prior: Floats  # (true class)

    def reindex(self, indices: Integers, n_items: int) -> Abilities:
        """Return the same for other annotators, by their places here; -1 is somebody new."""
        ability = np.append(self.ability, self.ability.mean())[indices]
        return self._replace(ability=ability, log_easiness=np.full(n_items, self.typical))

    @property
    def easiness(self) -> Floats:
        """How easy every item is; above 0: (item)."""
        return np.exp(self.log_easiness)

    @property
    def difficulty(self) -> Floats:
        """How hard every item is; above 0: (item)."""
        return np.exp(-self.log_easiness)


@dataclass(frozen=True, kw_only=True)
class Glad(AlternatingAggregator[Abilities]):
    """Abilities of annotators and difficulties of items, fitted with EM.

    Parameters
    ----------
    solver
        How parameters move: `newton`, each on its own; or `cg`, all together by conjugate
        gradients, at most 25 iterations a round. With `cg`, `tol` is about the expected log
        likelihood, as published with peerannot; that may stop early on a plateau.
    prevalence
        Whether classes are equally common (`uniform`) or as common as they are found (`estimated`).
    mean_ability
        Mean of the abilities' prior.
    mean_log_easiness
        Mean of the log easinesses' prior.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns("aaabbb", "xyzxyz", "001110")
    >>> result = Glad().fit(annotations)
    >>> result.labels.tolist()
    ['0', '1']
    >>> result.params.ability.round(1).tolist()
    [1.1, 1.1, -0.4]
    """

    learns: ClassVar[type] = Abilities

    solver: Literal["newton", "cg"] = "newton"
    prevalence: Literal["uniform", "estimated"] = "uniform"
    mean_ability: float = 1.0
    mean_log_easiness: float = 1.0

    def begin(self, fit: Fit) -> Reached[Abilities]:
        params = self._first(fit)
        if fit.start is not None:
            params, _ = self._maximise(fit, params, first_posterior(fit))
        return Reached(params)

    def advance(self, fit: Fit, last: Reached[Abilities]) -> Reached[Abilities]:
        params, reached = last.params, np.nan
        if last.posterior.size:
            params, reached = self._maximise(fit, params, last.posterior)
        posterior, evidence = expected(fit, partial(_expect, params=params))
        return Reached(params, posterior, evidence + self._log_prior(params), reached)

    def settled(
        self, trace: list[float], now: Reached[Abilities], before: Reached[Abilities]
    ) -> bool:
        # With `cg`, the expected log likelihood after every move, as published.
        return still(trace if self.solver == "newton" else [before.gauge, now.gauge], self.tol)

    def judge(self, fit: Fit, params: Abilities) -> tuple[Floats, Integers]:
        posterior, _ = expected(fit, partial(_expect, params=params))
        return posterior, first_best(posterior)

    def quality(self, params: Abilities, agreement: Floats) -> Floats:
        """Return the probability of being right about an item of typical easiness."""
        return logistic(params.ability * np.exp(params.typical))[0]

    def confusion(self, params: Abilities) -> Floats:
        return _coin(self.quality(params, params.ability), len(params.prior))

    def chances(self, params: Abilities, item: Integers, annotator: Integers) -> Floats:
        right, _ = logistic(params.ability[annotator] * np.exp(params.log_easiness[item]))
        return _coin(right, len(params.prior))

    def _first(self, fit: Fit) -> Abilities:
        annotations = fit.annotations
        return Abilities(
            np.full(annotations.n_annotators, self.mean_ability),
            np.full(annotations.n_items, self.mean_log_easiness),
            np.array(self.mean_log_easiness),
            np.full(annotations.n_classes, 1 / annotations.n_classes),
        )

    def _log_prior(self, params: Abilities) -> float:
        far = ((params.ability - self.mean_ability) ** 2).sum()
        return -0.5 * float(far + ((params.log_easiness - self.mean_log_easiness) ** 2).sum())

    def _maximise(self, fit: Fit, params: Abilities, posterior: Floats) -> tuple[Abilities, float]:
        """Return parameters that make what is believed more probable, and how probable."""
        if self.solver == "cg":
            params, value = self._conjugate(fit, params, posterior)
        else:
            for _ in range(_ALTERNATIONS):
                params, value = self._newton(fit, params, posterior)
        heard = fit.annotations.labels_per_item > 0
        if heard.any():
            params = params._replace(typical=np.array(params.log_easiness[heard].mean()))
        if self.prevalence == "estimated":
            known = heard if fit.gold is None else heard | (fit.gold >= 0)
            params = params._replace(prior=share(posterior[known].sum(axis=0)))
        return params, value

    def _newton(self, fit: Fit, params: Abilities, posterior: Floats) -> tuple[Abilities, float]:
        """Move every easiness, then every ability, towards its own best value."""
        ease = partial(_ease, params=params, posterior=posterior, mean=self.mean_log_easiness)
        params = params._replace(log_easiness=np.concatenate([*fit.engine.each(ease, fit.parts)]))

        def at(ability: Floats, whole: bool) -> Slopes:
            here = params._replace(ability=ability)
            work = partial(_enable, params=here, posterior=posterior, whole=whole)
            return pull(add(fit.engine.each(work, fit.parts)), ability - self.mean_ability)

        ability, value = climb(params.ability, at)
        far = ((params.log_easiness - self.mean_log_easiness) ** 2).sum()
        return params._replace(ability=ability), float(value.sum() - 0.5 * far)

    def _conjugate(self, fit: Fit, params: Abilities, posterior: Floats) -> tuple[Abilities, float]:
        """Move everything together, as published."""
        from scipy.optimize import minimize

        n_annotators = len(params.ability)

        def position(point: Floats) -> Abilities:
            return params._replace(ability=point[:n_annotators], log_easiness=point[n_annotators:])

        def at(point: Floats) -> tuple[float, Floats]:
            here = position(point)
            told = [*fit.engine.each(partial(_both, params=here, posterior=posterior), fit.parts)]
            fixed, able = add([(constant, by_annotator) for constant, by_annotator, _ in told])
            ability = able.slope - (here.ability - self.mean_ability)
            easiness = np.concatenate([by_item.slope for _, _, by_item in told])
            easiness -= here.log_easiness - self.mean_log_easiness
            value = fixed + float(able.value.sum()) + self._log_prior(here)
            return -value, -np.concatenate([ability, easiness])

        start = np.concatenate([params.ability, params.log_easiness])
        found = minimize(at, start, jac=True, method="CG", tol=0.01, options={"maxiter": 25})
        return position(found.x), -float(found.fun)


def _expect(part: Part, params: Abilities) -> tuple[float, Floats]:
    """Return log evidence and posterior of a part."""
    log_wrong = _log_wrong(part)
    x = params.ability[part.annotator] * _easiness(part, params)
    joint = part.score(x + log_wrong)
    joint -= part.by_item(logistic(x)[1] + log_wrong)[:, None]
    joint += logs(params.prior)
    return normalise(joint, part.allowed)


def _ease(part: Part, params: Abilities, posterior: Floats, mean: float) -> Floats:
    """Return better log easinesses of the items of a part."""
    believed = part.given_posterior(posterior[part.start : part.stop])
    ability, labels, item = params.ability[part.annotator], np.diff(part.index), part.item

    def at(log_easiness: Floats, whole: bool) -> Slopes:
        x = ability * np.repeat(np.exp(log_easiness), labels)
        return pull(slopes(x, x, believed, item, len(labels), whole), log_easiness - mean)

    return climb(params.log_easiness[part.start : part.stop], at)[0]


def _enable(part: Part, params: Abilities, posterior: Floats, whole: bool) -> Slopes:
    """Return where abilities should move: (annotator)."""
    believed, easiness = (
        part.given_posterior(posterior[part.start : part.stop]),
        _easiness(part, params),
    )
    who = part.annotator.astype(np.intp)
    return slopes(params.ability[who] * easiness, easiness, believed, who, part.n_annotators, whole)


def _both(part: Part, params: Abilities, posterior: Floats) -> tuple[float, Slopes, Slopes]:
    """Return what does not move, and the slopes of abilities and log easinesses."""
    believed, easiness = (
        part.given_posterior(posterior[part.start : part.stop]),
        _easiness(part, params),
    )
    who, item, n_items = part.annotator.astype(np.intp), part.item, part.stop - part.start
    x = params.ability[who] * easiness
    return (
        -_log_wrong(part) * float((1 - believed).sum()),
        slopes(x, easiness, believed, who, part.n_annotators),
        slopes(x, x, believed, item, n_items),
    )


def _log_wrong(part: Part) -> float:
    """Return the logarithm of how many classes are wrong."""
    return float(np.log(max(part.n_classes - 1, 1)))


def _easiness(part: Part, params: Abilities) -> Floats:
    """Return how easy the item of every annotation is."""
    easiness = np.exp(params.log_easiness[part.start : part.stop])
    return np.repeat(easiness, np.diff(part.index))


def _coin(right: Floats, n_classes: int) -> Floats:
    """Return what those make of every class who are right with a probability: (…, true, given)."""
    if n_classes == 1:
        return np.ones((len(right), 1, 1))
    chance, wrong = right[:, None, None], (1 - right[:, None, None]) / (n_classes - 1)
    return np.where(np.eye(n_classes, dtype=bool), chance, wrong)
