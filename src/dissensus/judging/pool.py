"""People and models in one label, without letting the models outvote people.

What a person would answer is predicted from what the judges answered,

    s_i(c) = P(a person chooses c | answers of the judges on i)

by multinomial logistic regression on one-hot answers (a missing answer is one more class), with a
ridge penalty, target people's labels. The items are split into folds (whole clusters), so that s_i
never uses people's labels on i. The judges then count like w people:

    P_i(c) = (n_ic + w s_i(c)) / (n_i + w)            n_ic: people who chose c
    w = argmax Σ over labels log((n_ic - 1 + w s_i(c)) / (n_i - 1 + w)),   items with two people

A confidence that a judge states enters as a feature: the logit of it, for the class it chose. The
method `judge-pool` is the same for `aggregate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp

from ..aggregation.aggregation import ClassAggregation
from ..aggregation.classes import ClassContext, ClassMethod
from ..answers.annotations import Annotations
from ..base.arrays import Array, Floats, Integers
from ..base.names import Names
from ..base.probability import log_normalize, normalize, safe_log
from ..base.storage import as_plain
from ..base.tables import Table
from ..method import Fitted
from ..params import Positive
from ..result import Result
from .mixed import Mixed, row_weights, voices, weighted_votes

PENALTY = 2.0
FOLDS = 5
WORTH = 2.0  # people that a panel counts for where that cannot be learned
_MIN_ITEMS = 20  # items with two people that learning it needs

_WORTH_LIMITS = (1e-2, 1e3)
_LIMIT = 6.0  # of the logit of a stated confidence
_ROUNDS = 50
_RIGHT = (0.7, 2.0)  # prior accuracy of a person, and how many labels it counts for


class Coefficients(NamedTuple):
    """A fitted regression; missing answers and confidences have coefficients of their own."""

    intercept: Floats  # (class)
    answer: Floats  # (judge, given class or missing, class)
    confidence: Floats  # (judge, given class, class)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Pooled(Result):
    """People and models in one label.

    Attributes
    ----------
    predicted
        s: the probability of every class as the judges have it: (item, class).
    worth
        w: how many people the judges count for on an item.
    learned
        Whether w was learned; otherwise it is 2.
    posterior
        P: (item, class).
    coefficients
        The regression on all labelled items.
    n_labels
        Items that people labelled.
    """

    items: Names
    classes: Names
    predicted: Floats
    worth: float
    learned: bool
    posterior: Floats
    coefficients: Coefficients
    n_labels: int

    def __repr__(self) -> str:
        return f"<Pooled: {len(self.items)} items; {'; '.join(self.sentences)}>"

    @property
    def tables(self) -> Mapping[str, Table]:
        """The probabilities of the classes, and those that the models alone predict."""
        names = self.classes.tolist()
        columns = {f"p:{name}": self.posterior[:, code] for code, name in enumerate(names)}
        columns |= {f"models:{name}": self.predicted[:, code] for code, name in enumerate(names)}
        return {"labels": {"item": self.items, **columns}}

    @property
    def sentences(self) -> tuple[str, ...]:
        """How many people the models count for."""
        if self.learned:
            return (f"the models count like {self.worth:.1f} people on an item",)
        return (
            "the models count like 2 people on an item: a guess, because hardly any item has "
            "labels of two people",
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what the models count for, ready for JSON."""
        return {"worth": as_plain(self.worth), "learned": self.learned, "n_labels": self.n_labels}


def pool(data: Mixed, *, penalty: float = PENALTY, folds: int = FOLDS, seed: int = 0) -> Pooled:
    """Return people and models in one label; a known class counts as one person's label."""
    votes, n_people, sure = data.person_votes.copy(), data.n_people.copy(), data.truth >= 0
    votes[sure], n_people[sure] = np.eye(data.n_classes)[data.truth[sure]], 1
    return pooled(
        votes,
        n_people,
        data.judges,
        data.cluster,
        data.classes,
        penalty=penalty,
        folds=folds,
        seed=seed,
    )


def pooled(
    votes: Floats,
    n_people: Integers,
    judges: Annotations,
    cluster: Integers,
    classes: Names,
    *,
    penalty: float = PENALTY,
    folds: int = FOLDS,
    seed: int = 0,
) -> Pooled:
    """Return the pool from people's votes, (item, class), and the annotations of judges."""
    labelled = np.flatnonzero(n_people > 0)
    features = answer_features(judges)
    predicted, fitted = _out_of_fold(
        features, votes, labelled, groups=cluster[labelled], penalty=penalty, folds=folds, seed=seed
    )
    worth, learned = _worth(votes, n_people, predicted)
    posterior = normalize(votes + worth * predicted)
    n_judges, n_classes = judges.n_annotators, votes.shape[1]
    middle = n_judges * (n_classes + 1)
    answer = fitted[1 : middle + 1].reshape(n_judges, n_classes + 1, n_classes)
    stated_part = fitted[middle + 1 :]
    confidence = np.zeros((n_judges, n_classes, n_classes))
    if len(stated_part):
        confidence = stated_part.reshape(n_judges, n_classes, n_classes)
    coefficients = Coefficients(fitted[0], answer, confidence)
    return Pooled(
        items=judges.items,
        classes=classes,
        predicted=predicted,
        worth=worth,
        learned=learned,
        posterior=posterior,
        coefficients=coefficients,
        n_labels=len(labelled),
    )


def predicted_by(coefficients: Coefficients, judges: Annotations) -> Floats:
    """Return s of items from the answers of the judges: (item, class)."""
    n_classes = len(coefficients.intercept)
    stated = coefficients.confidence if stated_confidence(judges) is not None else None
    parts = [coefficients.intercept[None], coefficients.answer.reshape(-1, n_classes)]
    if stated is not None:
        parts.append(stated.reshape(-1, n_classes))
    return _softmax(answer_features(judges) @ np.concatenate(parts))


def answer_features(judges: Annotations) -> Any:
    """Return a constant, one-hot answers and logits of confidences: (item, feature)."""
    n_items, n_judges, n_classes = judges.n_items, judges.n_annotators, judges.n_classes
    item, judge = judges.item.astype(np.int64), judges.annotator.astype(np.int64)
    weight = row_weights(judges)
    answered = np.zeros((n_items, n_judges), dtype=bool)
    answered[item, judge] = True
    gap, silent_judge = np.nonzero(~answered)
    rows = [np.arange(n_items), item, gap]
    columns = [
        np.zeros(n_items, dtype=np.int64),
        1 + judge * (n_classes + 1) + judges.label,
        1 + silent_judge * (n_classes + 1) + n_classes,
    ]
    values = [np.ones(n_items), weight, np.ones(len(gap))]
    width = 1 + n_judges * (n_classes + 1)
    stated = stated_confidence(judges)
    if stated is not None:
        rows.append(item)
        columns.append(width + judge * n_classes + judges.label)
        values.append(weight * np.nan_to_num(stated))
        width += n_judges * n_classes
    at = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.concatenate(values), at), shape=(n_items, width))


def stated_confidence(judges: Annotations) -> Floats | None:
    """Return the logit of the confidence that goes with every answer, NaN without one.

    Confidences are between 0 and 1, or percentages. `None` if there are none, or other numbers.
    """
    stated: Array | None = judges.columns.get("confidence")
    if stated is None or not len(stated):
        return None
    try:
        number = stated.astype(np.float64)
    except (TypeError, ValueError):
        return None
    finite = np.isfinite(number)
    most = float(number[finite].max(initial=0))
    if not finite.any() or float(number[finite].min(initial=0)) < 0 or most > 100:
        return None
    share = number / (100 if most > 1 else 1)
    with np.errstate(divide="ignore"):
        return np.clip(np.log(share) - np.log1p(-share), -_LIMIT, _LIMIT)


def _out_of_fold(
    features: Any,
    votes: Floats,
    labelled: Integers,
    *,
    groups: Integers,
    penalty: float,
    folds: int,
    seed: int,
) -> tuple[Floats, Floats]:
    """Return s of every item, and the coefficients on all labelled items.

    Labelled items of a group stay together.
    """
    n_features, n_classes = features.shape[1], votes.shape[1]
    start = np.zeros((n_features, n_classes))
    names, group = np.unique(groups, return_inverse=True)
    count = min(folds, len(names))
    if count < 2:  # one labelled item: nothing is learned without it
        fitted = fit_ridge(features[labelled], votes[labelled], penalty, start)
        predicted = _softmax(features @ fitted)
        predicted[labelled] = 1 / max(n_classes, 1)
        return predicted, fitted
    held_out = np.empty((len(labelled), n_classes))
    parts = []
    fold = np.random.default_rng(seed).permutation(len(names)) % count
    for number in range(count):
        held = fold[group] == number
        inside = labelled[~held]
        parts.append(fit_ridge(features[inside], votes[inside], penalty, start))
        held_out[held] = _softmax(features[labelled[held]] @ parts[-1])
    middle = np.mean(parts, axis=0)
    fitted = fit_ridge(features[labelled], votes[labelled], penalty, middle)
    predicted = _softmax(features @ fitted)
    predicted[labelled] = held_out
    return predicted, fitted


def fit_ridge(features: Any, counts: Floats, penalty: float, start: Floats) -> Floats:
    """Return coefficients of multinomial logistic regression: (feature, class).

    Counts of classes are the target; the first feature is constant and not penalized.
    """
    shape, total = start.shape, counts.sum(axis=1)
    if not len(counts):
        return np.zeros(shape)
    free = np.ones(shape[0])
    free[0] = 1e-6  # only so that it has one solution
    transposed = features.T.tocsr()

    def objective(flat: Floats) -> tuple[float, Floats]:
        weight = flat.reshape(shape)
        score = features @ weight
        normal = logsumexp(score, axis=1, keepdims=True)
        shrunk = penalty * free[:, None] * weight
        loss = float((total * normal[:, 0]).sum() - (counts * score).sum())
        gradient = transposed @ (total[:, None] * np.exp(score - normal) - counts) + shrunk
        return loss + 0.5 * float((shrunk * weight).sum()), gradient.ravel()

    solution = minimize(
        objective,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-9, "gtol": 1e-4},
    )
    return solution.x.reshape(shape)


def _worth(votes: Floats, n_people: Integers, predicted: Floats) -> tuple[float, bool]:
    """Return how many people the judges count for, and whether it was learned."""
    item, label = np.nonzero(np.where((n_people > 1)[:, None], votes, 0))
    if len(np.unique(item)) < _MIN_ITEMS:
        return WORTH, False
    count, n = votes[item, label], n_people[item] - 1.0
    n_agreeing, s = np.maximum(count - 1, 0), predicted[item, label]

    def loss(log_worth: float) -> float:
        worth = np.exp(log_worth)
        return -float((count * np.log((n_agreeing + worth * s) / (n + worth))).sum())

    limits = tuple(np.log(_WORTH_LIMITS))
    optimum = minimize_scalar(loss, bounds=limits, method="bounded", options={"xatol": 1e-4})
    return float(np.exp(optimum.x)), True


def _softmax(score: Floats) -> Floats:
    return np.exp(score - logsumexp(score, axis=1, keepdims=True))


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
            np.concatenate([weights, np.zeros((1, *weights.shape[1:]))])[indices]
            for weights in (self.answer, self.confidence)
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
class JudgePool(ClassMethod):
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

    def infer(self, fit: ClassContext) -> ClassAggregation:
        annotations = fit.answers
        kind = _kinds(annotations)
        people, judges = _of(annotations, kind == 0), _of(annotations, kind == 1)
        votes, n_people = weighted_votes(people), voices(people)
        if fit.gold is not None:
            gold_items = np.flatnonzero(fit.gold >= 0)
            votes[gold_items] = np.eye(annotations.n_classes)[fit.gold[gold_items]]
            n_people[gold_items] = 1
        if not len(judges) or not n_people.any():
            note = ""
            if len(judges):
                votes, note = weighted_votes(judges), "no person labelled anything: models vote"
            elif len(people) and not kind.any() and len(annotations.annotator_kinds):
                note = "no annotator is a model: people vote"
            return self.result(fit, normalize(votes), Fitted(notes=(note,) if note else ()))
        merged = pooled(
            votes,
            n_people,
            judges,
            np.arange(annotations.n_items),
            annotations.classes,
            penalty=self.penalty,
            seed=fit.seed,
        )
        right = _accuracies(people, merged.predicted)
        params = _params(kind, merged.coefficients, right, merged.worth)
        posterior = merged.posterior
        if self.likelihood == "one-coin":
            posterior = _one_coin(people, merged.predicted, right)
        return self.result(fit, posterior, Fitted(params, notes=merged.sentences))

    def posterior(self, fit: ClassContext, params: PoolParams) -> Floats:
        annotations = fit.answers
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


def _of(annotations: Annotations, members: Any) -> Annotations:
    """Return the labels of some annotators on all items."""
    return annotations if members.all() else annotations.subset(annotators=members)


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
        probability = _one_coin(people, prior, right)[people.item, people.label]
        counts = np.bincount(people.annotator, probability, minlength=people.n_annotators)
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
