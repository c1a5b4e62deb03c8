"""Choice among several methods by the held-out likelihood of annotations.

Items are split into folds. Every method learns without each fold and is scored by the likelihood of
the annotations on it: the labels of an item jointly, since only jointly do they show whether
annotators disagree because the inputs leave the class open or because they err (see `base.py`).

    choose(["raykar", "raykar[volume=0.1]", "raykar[volume=0.3]"], features, annotations).spec

The specifications are in the order of preference, the most preferred last: the last one within one
standard error of the best is chosen. That is how a volume is chosen: several volumes explain the
labels about as well, and the largest of them makes the truth identifiable (Ibrahim et al. 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from dissensus.answers.annotations import Annotations, Floats
from dissensus.deep.learning.classifier import CrowdClassifier
from dissensus.deep.nn.batches import Examples
from dissensus.errors import DataError, OptionError

_BATCH = 1024  # items per batch


class Candidate(NamedTuple):
    """How well one method predicts annotations."""

    spec: str
    log_likelihood: float  # per annotation
    behind: float  # the best, per annotation
    error: float  # standard error of that


class Choice(NamedTuple):
    """The chosen method and all candidates."""

    spec: str
    candidates: tuple[Candidate, ...]


def choose(
    specs: Sequence[str],
    X: ArrayLike,
    annotations: Annotations | ArrayLike,
    *,
    folds: int = 5,
    seed: int = 0,
    **settings: Any,
) -> Choice:
    """Return the last method that predicts annotations within one standard error of the best.

    Parameters
    ----------
    specs
        Specifications of methods, the most preferred last.
    X
        Inputs: (item, …).
    annotations
        Annotations, items in the order of the inputs.
    folds
        Number of folds.
    seed
        Random seed.
    settings
        Of `CrowdClassifier`.
    """
    if not isinstance(annotations, Annotations):
        annotations = Annotations.from_matrix(annotations, classes=settings.get("classes"))
    labelled = annotations.labels_per_item > 0
    if not 2 <= folds <= labelled.sum():
        raise OptionError(f"folds = {folds}, but it must be 2 to {labelled.sum()}, the items")
    if not specs:
        raise DataError("no methods to choose from; name one at least")
    fold = np.random.default_rng([seed, 0xF01D]).permutation(annotations.n_items) % folds
    scores = []  # (item) of every method: log-likelihood of its labels
    for spec in specs:
        score = np.zeros(annotations.n_items)
        for number in range(folds):
            out = (fold == number)[annotations.item]
            model = CrowdClassifier(spec, seed=seed, **settings).fit(X, annotations.keep(~out))
            score += _log_likelihood(model, X, annotations.keep(out))
        scores.append(score[labelled])
    return _chosen(specs, scores, len(annotations))


@torch.no_grad()
def _log_likelihood(estimator: CrowdClassifier, x: ArrayLike, annotations: Annotations) -> Floats:
    """Return the joint log-likelihood of the labels of every item: (item); 0 without labels."""
    model, score = estimator.model_, np.zeros(annotations.n_items)
    examples = Examples(estimator.prepare(x), annotations)
    for batch in examples.batches(_BATCH, 0, 0, shuffle=False):
        vector = model.classifier.encode(batch.x)
        log = model.log_together(model.log_class(vector), vector, batch)
        score[batch.item.numpy()] = log.double().numpy()
    return score


def _chosen(specs: Sequence[str], scores: Sequence[Floats], n_annotations: int) -> Choice:
    best = max(scores, key=np.sum)
    candidates = []
    for spec, score in zip(specs, scores, strict=True):
        behind = best - score
        error = float(behind.std() * np.sqrt(len(behind)) / n_annotations)
        mean = float(score.sum() / n_annotations)
        candidates.append(Candidate(spec, mean, float(behind.sum() / n_annotations), error))
    last = [each for each in candidates if each.behind <= each.error][-1]
    return Choice(last.spec, tuple(candidates))
