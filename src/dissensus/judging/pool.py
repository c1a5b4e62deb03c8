"""People and models in one label, without letting the models outvote people.

What a person would answer is predicted from what the judges answered,

    s_i(c) = P(a person chooses c | answers of the judges on i)

by multinomial logistic regression on one-hot answers (a missing answer is one more class), with a
ridge penalty, target people's labels. The items are split into folds (whole clusters), so that s_i
never uses people's labels on i. The judges then count like w people:

    P_i(c) = (n_ic + w s_i(c)) / (n_i + w)            n_ic: people who chose c
    w = argmax Σ over labels log((n_ic - 1 + w s_i(c)) / (n_i - 1 + w)),   items with two people

A confidence that a judge states enters as a feature: the logit of it, for the class it chose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp

from ..base.names import Names
from ..base.probability import normalize
from ..base.arrays import Array, Floats, Integers
from ..answers.annotations import Annotations
from .mixed import Mixed, row_weights

PENALTY = 2.0
FOLDS = 5
WORTH = 2.0  # people that a panel counts for where that cannot be learned
MIN_ITEMS = 20  # items with two people that learning it needs

_WORTH_LIMITS = (1e-2, 1e3)
_LIMIT = 6.0  # of the logit of a stated confidence


class Coefficients(NamedTuple):
    """A fitted regression; missing answers and confidences have coefficients of their own."""

    intercept: Floats  # (class)
    answer: Floats  # (judge, given class or missing, class)
    confidence: Floats  # (judge, given class, class)


@dataclass(frozen=True, eq=False)
class Pooled:
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

    classes: Names
    predicted: Floats
    worth: float
    learned: bool
    posterior: Floats
    coefficients: Coefficients
    n_labels: int


def pool(data: Mixed, *, penalty: float = PENALTY, folds: int = FOLDS, seed: int = 0) -> Pooled:
    """Return people and models in one label; a known class counts as one person's label."""
    votes, n_people, sure = data.person_votes.copy(), data.n_people.copy(), data.truth >= 0
    votes[sure], n_people[sure] = np.eye(data.n_classes)[data.truth[sure]], 1
    return pooled(votes, n_people, data.judges, data.cluster, data.classes, penalty, folds, seed)


def pooled(
    votes: Floats,
    n_people: Integers,
    judges: Annotations,
    cluster: Integers,
    classes: Names,
    penalty: float = PENALTY,
    folds: int = FOLDS,
    seed: int = 0,
) -> Pooled:
    """Return the pool from people's votes, (item, class), and the annotations of judges."""
    labelled = np.flatnonzero(n_people > 0)
    features = answer_features(judges)
    predicted, fitted = _out_of_fold(features, votes, labelled, cluster, penalty, folds, seed)
    worth, learned = _worth(votes, n_people, predicted)
    posterior = normalize(votes + worth * predicted)
    n_judges, n_classes = judges.n_annotators, votes.shape[1]
    middle = n_judges * (n_classes + 1)
    answer = fitted[1 : middle + 1].reshape(n_judges, n_classes + 1, n_classes)
    rest = fitted[middle + 1 :]
    confidence = np.zeros((n_judges, n_classes, n_classes))
    if len(rest):
        confidence = rest.reshape(n_judges, n_classes, n_classes)
    coefficients = Coefficients(fitted[0], answer, confidence)
    return Pooled(classes, predicted, worth, learned, posterior, coefficients, len(labelled))


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
    gap, who = np.nonzero(~answered)
    rows = [np.arange(n_items), item, gap]
    columns = [
        np.zeros(n_items, dtype=np.int64),
        1 + judge * (n_classes + 1) + judges.label,
        1 + who * (n_classes + 1) + n_classes,
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
    given: Array | None = judges.columns.get("confidence")
    if given is None or not len(given):
        return None
    try:
        number = given.astype(np.float64)
    except (TypeError, ValueError):
        return None
    known = np.isfinite(number)
    most = float(number[known].max(initial=0))
    if not known.any() or float(number[known].min(initial=0)) < 0 or most > 100:
        return None
    share = number / (100 if most > 1 else 1)
    with np.errstate(divide="ignore"):
        return np.clip(np.log(share) - np.log1p(-share), -_LIMIT, _LIMIT)


def _out_of_fold(
    features: Any,
    votes: Floats,
    labelled: Integers,
    cluster: Integers,
    penalty: float,
    folds: int,
    seed: int,
) -> tuple[Floats, Floats]:
    """Return s of every item, and the coefficients on all labelled items."""
    n_features, n_classes = features.shape[1], votes.shape[1]
    start = np.zeros((n_features, n_classes))
    groups, group = np.unique(cluster[labelled], return_inverse=True)
    count = min(folds, len(groups))
    if count < 2:  # one labelled item: nothing is learned without it
        fitted = fit_ridge(features[labelled], votes[labelled], penalty, start)
        predicted = _softmax(features @ fitted)
        predicted[labelled] = 1 / max(n_classes, 1)
        return predicted, fitted
    held_out = np.empty((len(labelled), n_classes))
    parts = []
    fold = np.random.default_rng(seed).permutation(len(groups)) % count
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

    done = minimize(
        objective,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-9, "gtol": 1e-4},
    )
    return done.x.reshape(shape)


def _worth(votes: Floats, n_people: Integers, predicted: Floats) -> tuple[float, bool]:
    """Return how many people the judges count for, and whether it was learned."""
    item, label = np.nonzero(np.where((n_people > 1)[:, None], votes, 0))
    if len(np.unique(item)) < MIN_ITEMS:
        return WORTH, False
    count, n = votes[item, label], n_people[item] - 1.0
    other, s = np.maximum(count - 1, 0), predicted[item, label]

    def loss(log_worth: float) -> float:
        worth = np.exp(log_worth)
        return -float((count * np.log((other + worth * s) / (n + worth))).sum())

    limits = tuple(np.log(_WORTH_LIMITS))
    found = minimize_scalar(loss, bounds=limits, method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x)), True


def _softmax(score: Floats) -> Floats:
    return np.exp(score - logsumexp(score, axis=1, keepdims=True))
