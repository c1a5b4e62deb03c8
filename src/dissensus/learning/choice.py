"""Which of several methods to take, by the annotations alone.

The items are cut into parts. Every method learns without each part, and is asked how likely the
annotations on it are: the labels of an item together, for only together do they tell whether
annotators disagree because the inputs leave the class open or because they err (see `_base.py`).

    choose(["raykar", "raykar[volume=0.1]", "raykar[volume=0.3]"], features, annotations).spec

The specifications go from the plainest to the one that is wanted most where nothing speaks against
it: taken is the last that is no more than one standard error behind the best. That is how a volume
is chosen. Predictions and confusion matrices explain the labels about as well under any of several
volumes; of those, the largest is the one that makes the truth identifiable (Ibrahim et al. 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from .._relation import Floats
from ..annotations import Annotations
from ..errors import DataError, OptionError
from ..nn.batches import Examples
from .classifier import CrowdClassifier

__all__ = ["Candidate", "Choice", "choose"]

_PIECE = 1024  # items that are looked at together


class Candidate(NamedTuple):
    """How well one method foresees annotations."""

    spec: str
    log_likelihood: float  # per annotation
    behind: float  # the best, per annotation
    error: float  # standard error of that


class Choice(NamedTuple):
    """What was chosen, and among what."""

    spec: str
    candidates: tuple[Candidate, ...]


def choose(
    specs: Sequence[str],
    X: ArrayLike,  # noqa: N803
    annotations: Annotations | ArrayLike,
    *,
    folds: int = 5,
    seed: int = 0,
    **settings: Any,
) -> Choice:
    """Return the last method that foresees annotations about as well as the best.

    Parameters
    ----------
    specs
        Methods as the registry writes them, the most wanted last.
    X
        Inputs: (item, …).
    annotations
        Who said what, items in the order of the inputs.
    folds
        Into how many parts the items are cut.
    seed
        Decides the parts, and what is random in training.
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
    part = np.random.default_rng([seed, 0xF01D]).permutation(annotations.n_items) % folds
    found = []  # (item) of every method: log-likelihood of its labels
    for spec in specs:
        score = np.zeros(annotations.n_items)
        for number in range(folds):
            out = (part == number)[annotations.item]
            made = CrowdClassifier(spec, seed=seed, **settings).fit(X, annotations.keep(~out))
            score += _together(made, X, annotations.keep(out))
        found.append(score[labelled])
    return _chosen(specs, found, len(annotations))


@torch.no_grad()
def _together(made: CrowdClassifier, x: ArrayLike, annotations: Annotations) -> Floats:
    """Return how likely the labels of every item are, together: (item); 0 without labels."""
    model, score = made.model_, np.zeros(annotations.n_items)
    examples = Examples(made.prepare(x), annotations)
    for batch in examples.batches(_PIECE, 0, 0, shuffle=False):
        vector = model.classifier.encode(batch.x)
        found = model.log_together(model.log_class(vector), vector, batch)
        score[batch.item.numpy()] = found.double().numpy()
    return score


def _chosen(specs: Sequence[str], found: Sequence[Floats], n_annotations: int) -> Choice:
    best = max(found, key=np.sum)
    told = []
    for spec, score in zip(specs, found, strict=True):
        behind = best - score
        error = float(behind.std() * np.sqrt(len(behind)) / n_annotations)
        mean = float(score.sum() / n_annotations)
        told.append(Candidate(spec, mean, float(behind.sum() / n_annotations), error))
    last = [each for each in told if each.behind <= each.error][-1]
    return Choice(last.spec, tuple(told))
