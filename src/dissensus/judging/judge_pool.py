"""Judge pool: labels of people, and models that count like a learned number of people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ..base.probability import log_normalize, normalize, safe_log
from ..base.arrays import Floats, Integers
from ..aggregation import Aggregator, FitContext, Fitted
from ..answers.annotations import Annotations
from ..params import Positive
from ..result import Aggregation
from .mixed import voices, weighted_votes
from .pool import PENALTY, Coefficients, pooled, predicted_by

_ROUNDS = 50
_RIGHT = (0.7, 2.0)  # prior accuracy of a person, and how many labels it counts for


class PoolParams(NamedTuple):
    """The regression on models' answers, and what they are worth."""

    model: Floats  # (annotator): 1 for a model, 0 for others, -1 for code
    intercept: Floats  # (class)
    answer: Floats  # (annotator, given class or missing, class); zero for people
    confidence: Floats  # (annotator, given class, class)
    right: Floats  # (annotator): people's accuracy, for `one-coin`
    worth: Floats  # ()

    def reindex(self, indices: Integers, n_items: int) -> PoolParams:
        """Return the parameters of other annotators by their indices here; -1 is a new person."""
        person = self.right[self.model == 0]
        average = float(person.mean()) if len(person) else _RIGHT[0]
        answer, confidence = (
            np.concatenate([one, np.zeros((1, *one.shape[1:]))])[indices]
            for one in (self.answer, self.confidence)
        )
        return PoolParams(
            np.append(self.model, 0.0)[indices],
            self.intercept,
            answer,
            confidence,
            np.append(self.right, average)[indices],
            self.worth,
        )

    @classmethod
    def unpack(cls, arrays: dict[str, Any]) -> PoolParams | None:
        """Return parameters from arrays; without models there are none."""
        return cls(**arrays) if arrays else None


@dataclass(frozen=True, kw_only=True)
class JudgePool(Aggregator):
    """People's votes and what models predict of them, with a learned weight.

    Judge pool: labels of people, and models that count like a learned number of people.

    See `pool` for the method. Without models it is people's vote shares, and without people those
    of the models. With `likelihood=one-coin`, what the models predict is the prior of a one-coin
    model of people, fitted with EM: better labels where there are many classes, but overconfident.

        posterior[i, t] = (n[i, t] + w · s[i, t]) / (n[i] + w)
        n: people who chose t,   s: what the models predict,   w: people that models count for

    When it fails: With few items labelled by both people and models, the weight is uncertain.
    Models that were trained on these labels look better than they are.

    Parameters
    ----------
    likelihood
        How people's labels enter: as `votes`, or by a `one-coin` model.
    penalty
        Ridge penalty of the regression on models' answers.

    Examples
    --------
    >>> from dissensus import Annotations
    >>> annotations = Annotations.from_columns(
    ...     "aaabbbcc", ["ann", "bob", "model:m"] * 2 + ["ann", "model:m"], "00011101"
    ... ).with_kinds()
    >>> JudgePool().fit(annotations).labels.tolist()
    ['0', '1', '0']
    """

    params_type: ClassVar[type] = PoolParams

    likelihood: Literal["votes", "one-coin"] = "votes"
    penalty: Positive = PENALTY

    def infer(self, fit: FitContext) -> Aggregation:
        annotations = fit.annotations
        kind = _kinds(annotations)
        people, judges = _of(annotations, kind == 0), _of(annotations, kind == 1)
        votes, n_people = weighted_votes(people), voices(people)
        if fit.gold is not None:
            known = np.flatnonzero(fit.gold >= 0)
            votes[known] = np.eye(annotations.n_classes)[fit.gold[known]]
            n_people[known] = 1
        if not len(judges) or not n_people.any():
            note = ""
            if len(judges):
                votes, note = weighted_votes(judges), "no person labelled anything: models vote"
            elif len(people) and not kind.any() and len(annotations.annotator_kinds):
                note = "no annotator is a model: people vote"
            return self.result(fit, normalize(votes), Fitted(notes=(note,) if note else ()))
        found = pooled(
            votes,
            n_people,
            judges,
            np.arange(annotations.n_items),
            annotations.classes,
            self.penalty,
            seed=fit.seed,
        )
        right = _accuracies(people, found.predicted)
        params = _params(kind, found.coefficients, right, found.worth)
        notes = (f"the models count like {found.worth:.1f} people on an item",)
        if not found.learned:
            notes = (
                "the models count like 2 people on an item: a guess, because hardly any item has "
                "labels of two people",
            )
        posterior = found.posterior
        if self.likelihood == "one-coin":
            posterior = _one_coin(people, found.predicted, right)
        return self.result(fit, posterior, Fitted(params, notes=notes))

    def posterior(self, fit: FitContext, params: PoolParams) -> Floats:
        annotations = fit.annotations
        model = params.model > 0
        people, judges = _of(annotations, params.model == 0), _of(annotations, model)
        coefficients = Coefficients(
            params.intercept, params.answer[model], params.confidence[model]
        )
        predicted = predicted_by(coefficients, judges)
        if self.likelihood == "one-coin":
            return _one_coin(people, predicted, params.right[params.model == 0])
        return normalize(weighted_votes(people) + float(params.worth) * predicted)

    def temperature(self, n_labels: Integers) -> Floats | None:
        return None if self.likelihood == "votes" else super().temperature(n_labels)

    def n_floats(self, annotations: Annotations) -> int:
        n_judges = int(annotations.is_kind("model").sum())
        return annotations.n_items * (4 * annotations.n_classes + n_judges)


def _kinds(annotations: Annotations) -> Integers:
    """Return 1 for models, -1 for code, 0 for others."""
    return annotations.is_kind("model").astype(np.int64) - annotations.is_kind("code")


def _of(annotations: Annotations, chosen: Any) -> Annotations:
    """Return the labels of some annotators on all items."""
    return annotations if chosen.all() else annotations.subset(annotators=chosen)


def _params(kind: Integers, coefficients: Coefficients, right: Floats, worth: float) -> PoolParams:
    answer = np.zeros((len(kind), *coefficients.answer.shape[1:]))
    confidence = np.zeros((len(kind), *coefficients.confidence.shape[1:]))
    answer[kind == 1], confidence[kind == 1] = coefficients.answer, coefficients.confidence
    accuracy = np.full(len(kind), _RIGHT[0])
    accuracy[kind == 0] = right
    return PoolParams(
        kind.astype(float), coefficients.intercept, answer, confidence, accuracy, np.array(worth)
    )


def _accuracies(people: Annotations, prior: Floats) -> Floats:
    """Return the accuracy of every person under a one-coin model with this prior."""
    mean, strength = _RIGHT
    right = np.full(people.n_annotators, mean)
    labels = people.labels_per_annotator
    for _ in range(_ROUNDS):
        given = _one_coin(people, prior, right)[people.item, people.label]
        counts = np.bincount(people.annotator, given, minlength=people.n_annotators)
        new = (counts + strength * mean) / (labels + strength)
        if np.abs(new - right).max(initial=0) < 1e-6:
            break
        right = new
    return right


def _one_coin(people: Annotations, prior: Floats, right: Floats) -> Floats:
    """Return the posterior of a one-coin model with a prior for every item: (item, class)."""
    n_classes = people.n_classes
    right = np.clip(right, 1e-6, 1 - 1e-6)
    odds = np.log(right) - np.log((1 - right) / max(n_classes - 1, 1))
    cell = people.item.astype(np.int64) * n_classes + people.label
    votes = np.bincount(cell, odds[people.annotator], minlength=people.n_items * n_classes)
    joint = votes.reshape(people.n_items, n_classes) + safe_log(prior)
    return log_normalize(joint)[1]
