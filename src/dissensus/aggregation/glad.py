"""GLAD (Whitehill et al. 2009): abilities of annotators and difficulties of items.

Annotator a is right about item i with probability sigmoid(ability[a] · exp(log_easiness[i]));
all wrong classes are equally probable. A negative ability is an adversarial annotator. Both have a
normal prior, of standard deviation 1 by default. In the M-step abilities are independent of each
other, and so are easinesses, so each takes Newton steps of its own, halved until it gains. The
objective, evidence plus log prior, never falls.

    P(annotator a is right about item i) = sigmoid(ability[a] · exp(log_easiness[i]))

When it fails: Errors are spread evenly over classes, so it cannot express that a class is missed:
on bluebirds it is right in 72 %, Dawid-Skene in 90 %. With few labels per item, difficulty is
mostly its prior.

    J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma, J. Movellan. Whose vote should count more: optimal
    integration of labels from labelers of unknown expertise. Advances in Neural Information
    Processing Systems 22, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from ..answers.annotations import Part
from ..base.arrays import Floats, Integers
from ..base.engine import add
from ..base.iteration import (
    Derivatives,
    add_normal_prior,
    derivatives,
    logistic,
    newton_step,
    relative_change_below,
)
from ..base.probability import log_normalize, normalize, safe_log
from ..params import Positive
from .classes import ClassContext
from .em import Alternating, State, expectation, start_posterior

_ALTERNATIONS = 2  # Newton steps of both kinds in every iteration


class Abilities(NamedTuple):
    """Parameters of GLAD."""

    ability: Floats  # (annotator)
    log_easiness: Floats  # (item)
    typical: Floats  # (): the mean log easiness of items that have labels
    prior: Floats  # (true class)

    def reindex(self, indices: Integers, n_items: int) -> Abilities:
        """Return the parameters of other annotators by their indices here; -1 is a new one."""
        ability = np.append(self.ability, self.ability.mean())[indices]
        return self._replace(ability=ability, log_easiness=np.full(n_items, self.typical))

    @property
    def easiness(self) -> Floats:
        """Easiness of items, above 0: (item)."""
        return np.exp(self.log_easiness)

    @property
    def difficulty(self) -> Floats:
        """Difficulty of items, above 0: (item)."""
        return np.exp(-self.log_easiness)


@dataclass(frozen=True, kw_only=True)
class Glad(Alternating[Abilities]):
    """Abilities of annotators and difficulties of items, fitted with EM.

    Parameters
    ----------
    solver
        The M-step: `newton`, every parameter on its own; or `cg`, all together by conjugate
        gradients, with at most 25 steps. With `cg`, `tol` is about the expected log-likelihood, as
        published with peerannot; that may stop early on a plateau.
    prevalence
        Whether the prevalence of classes is `uniform` or `estimated`.
    mean_ability
        Mean of the abilities' prior.
    mean_log_easiness
        Mean of the log easinesses' prior.
    precision
        Inverse variance of both priors; towards 0, maximum likelihood.

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

    params_type: ClassVar[type] = Abilities

    solver: Literal["newton", "cg"] = "newton"
    prevalence: Literal["uniform", "estimated"] = "uniform"
    mean_ability: float = 1.0
    mean_log_easiness: float = 1.0
    precision: Positive = 1.0

    def first_state(self, fit: ClassContext) -> State[Abilities]:
        annotations = fit.answers
        params = Abilities(
            np.full(annotations.n_annotators, self.mean_ability),
            np.full(annotations.n_items, self.mean_log_easiness),
            np.array(self.mean_log_easiness),
            np.full(annotations.n_classes, 1 / annotations.n_classes),
        )
        if fit.start is not None:
            params, _ = self._m_step(fit, params, start_posterior(fit))
        return State(params)

    def advance(self, fit: ClassContext, last: State[Abilities]) -> State[Abilities]:
        params, likelihood = last.params, np.nan
        if last.posterior.size:
            params, likelihood = self._m_step(fit, params, last.posterior)
        posterior, evidence = expectation(fit, partial(_e_step, params=params))
        return State(params, posterior, evidence + self._log_prior(params), likelihood)

    def has_converged(
        self, trace: list[float], state: State[Abilities], last: State[Abilities]
    ) -> bool:
        if self.solver == "cg":  # by the expected log-likelihood, as published
            trace = [last.expected_likelihood, state.expected_likelihood]
        return relative_change_below(trace, self.tol)

    def part_posterior(self, part: Part, params: Abilities) -> Floats:
        return _e_step(part, params)[1]

    def quality(self, params: Abilities, agreement: Floats) -> Floats:
        """Return the probability of being right about an item of typical easiness."""
        return logistic(params.ability * np.exp(params.typical))[0]

    def confusion(self, params: Abilities) -> Floats:
        return _matrices(self.quality(params, params.ability), len(params.prior))

    def label_probabilities(self, params: Abilities, item: Integers, annotator: Integers) -> Floats:
        right, _ = logistic(params.ability[annotator] * np.exp(params.log_easiness[item]))
        return _matrices(right, len(params.prior))

    def _log_prior(self, params: Abilities) -> float:
        far = ((params.ability - self.mean_ability) ** 2).sum()
        far += ((params.log_easiness - self.mean_log_easiness) ** 2).sum()
        return -0.5 * self.precision * float(far)

    def _m_step(
        self, fit: ClassContext, params: Abilities, posterior: Floats
    ) -> tuple[Abilities, float]:
        """Return better parameters, and their expected log-likelihood."""
        if self.solver == "cg":
            params, value = self._conjugate_gradients(fit, params, posterior)
        else:
            for _ in range(_ALTERNATIONS):
                params, value = self._newton(fit, params, posterior)
        labelled = fit.answers.labels_per_item > 0
        if labelled.any():
            params = params._replace(typical=np.array(params.log_easiness[labelled].mean()))
        if self.prevalence == "estimated":
            informed = labelled if fit.gold is None else labelled | (fit.gold >= 0)
            params = params._replace(prior=normalize(posterior[informed].sum(axis=0)))
        return params, value

    def _newton(
        self, fit: ClassContext, params: Abilities, posterior: Floats
    ) -> tuple[Abilities, float]:
        """Take a Newton step of every easiness, then of every ability."""
        step = partial(_step_easiness, params=params, posterior=posterior)
        step = partial(step, mean=self.mean_log_easiness, precision=self.precision)
        params = params._replace(log_easiness=np.concatenate([*fit.engine.each(step, fit.parts)]))

        def evaluate(ability: Floats, full: bool) -> Derivatives:
            trial = params._replace(ability=ability)
            work = partial(_by_ability, params=trial, posterior=posterior, full=full)
            likelihood = reduce(add, fit.engine.each(work, fit.parts))
            return add_normal_prior(likelihood, ability - self.mean_ability, self.precision)

        ability, value = newton_step(params.ability, evaluate)
        penalty = 0.5 * self.precision * ((params.log_easiness - self.mean_log_easiness) ** 2).sum()
        return params._replace(ability=ability), float(value.sum() - penalty)

    def _conjugate_gradients(
        self, fit: ClassContext, params: Abilities, posterior: Floats
    ) -> tuple[Abilities, float]:
        """Move all parameters together, as published."""
        from scipy.optimize import minimize

        n_annotators = len(params.ability)

        def params_at(point: Floats) -> Abilities:
            return params._replace(ability=point[:n_annotators], log_easiness=point[n_annotators:])

        def negative(point: Floats) -> tuple[float, Floats]:
            trial = params_at(point)
            work = partial(_by_both, params=trial, posterior=posterior)
            parts = [*fit.engine.each(work, fit.parts)]
            constant, able = reduce(
                add, [(constant, by_annotator) for constant, by_annotator, _ in parts]
            )
            ability = able.gradient - self.precision * (trial.ability - self.mean_ability)
            easiness = np.concatenate([by_item.gradient for _, _, by_item in parts])
            easiness -= self.precision * (trial.log_easiness - self.mean_log_easiness)
            value = constant + float(able.value.sum()) + self._log_prior(trial)
            return -value, -np.concatenate([ability, easiness])

        start = np.concatenate([params.ability, params.log_easiness])
        best = minimize(negative, start, jac=True, method="CG", tol=0.01, options={"maxiter": 25})
        return params_at(best.x), -float(best.fun)


def _e_step(part: Part, params: Abilities) -> tuple[float, Floats]:
    """Return log evidence and posterior of a part."""
    log_wrong = _log_wrong(part)
    x = params.ability[part.annotator] * _easiness(part, params)
    joint = part.votes(x + log_wrong)
    joint -= part.by_item(logistic(x)[1] + log_wrong)[:, None]
    joint += safe_log(params.prior)
    return log_normalize(joint, part.allowed)


def _step_easiness(
    part: Part, params: Abilities, posterior: Floats, mean: float, precision: float
) -> Floats:
    """Return better log easinesses of the items of a part."""
    right = part.given_posterior(posterior[part.start : part.stop])
    ability, labels, item = params.ability[part.annotator], np.diff(part.index), part.item

    def evaluate(log_easiness: Floats, full: bool) -> Derivatives:
        x = ability * np.repeat(np.exp(log_easiness), labels)
        likelihood = derivatives(x, x, right=right, group=item, size=len(labels), full=full)
        return add_normal_prior(likelihood, log_easiness - mean, precision)

    return newton_step(params.log_easiness[part.start : part.stop], evaluate)[0]


def _by_ability(part: Part, params: Abilities, posterior: Floats, full: bool = True) -> Derivatives:
    """Return the derivatives by abilities: (annotator)."""
    right = part.given_posterior(posterior[part.start : part.stop])
    easiness, annotator = _easiness(part, params), part.annotator.astype(np.intp)
    x = params.ability[annotator] * easiness
    return derivatives(x, easiness, right=right, group=annotator, size=part.n_annotators, full=full)


def _by_both(
    part: Part, params: Abilities, posterior: Floats
) -> tuple[float, Derivatives, Derivatives]:
    """Return a constant, and the derivatives by abilities and by log easinesses."""
    right = part.given_posterior(posterior[part.start : part.stop])
    x = params.ability[part.annotator] * _easiness(part, params)
    return (
        -_log_wrong(part) * float((1 - right).sum()),
        _by_ability(part, params, posterior),
        derivatives(x, x, right=right, group=part.item, size=part.stop - part.start),
    )


def _log_wrong(part: Part) -> float:
    """Return the logarithm of the number of wrong classes."""
    return float(np.log(max(part.n_classes - 1, 1)))


def _easiness(part: Part, params: Abilities) -> Floats:
    """Return the easiness of every annotation's item."""
    easiness = np.exp(params.log_easiness[part.start : part.stop])
    return np.repeat(easiness, np.diff(part.index))


def _matrices(right: Floats, n_classes: int) -> Floats:
    """Return the confusion matrices of these accuracies: (…, true class, given class)."""
    if n_classes == 1:
        return np.ones((len(right), 1, 1))
    wrong = (1 - right[:, None, None]) / (n_classes - 1)
    return np.where(np.eye(n_classes, dtype=bool), right[:, None, None], wrong)
