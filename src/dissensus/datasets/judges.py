"""Models as judges, simulated: few labels by people, many by models that share errors.

Every item has a true class and one wrong class that misleads models. A person is right with
probability `person_accuracy`, and otherwise chooses any other class. A model is right with
`judge_accuracy`; with probability `shared` this is decided once for all models on an item, and
those who are then wrong choose the misleading class. After the share `drift_after` of the items,
models are right less often, by `drift`. People label the first `per_item` of a random order, on
`n_labelled` random items. A model answers `repeats` times and states a confidence that is higher
where it is right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..base.names import numbered
from ..base.arrays import Integers
from ..answers.annotations import Annotations


class JudgedItems(NamedTuple):
    """Simulated labels of people and models, and the truth."""

    annotations: Annotations
    truth: Integers  # (item)


def simulate_judges(
    *,
    n_items: int = 600,
    n_labelled: int | None = None,
    n_people: int = 3,
    per_item: int = 2,
    n_judges: int = 4,
    n_classes: int = 2,
    person_accuracy: float = 0.85,
    judge_accuracy: float = 0.8,
    shared: float = 0.5,
    repeats: int = 1,
    drift: float = 0.0,
    drift_after: float = 0.5,
    seed: int = 0,
) -> JudgedItems:
    """Draw labels of people p1, p2, … and models model:m1, model:m2, …, with known truth.

    Examples
    --------
    >>> drawn = simulate_judges(n_items=100, n_labelled=40, seed=1)
    >>> drawn.annotations
    <Annotations: 480 labels by 7 annotators on 100 items; classes 0, 1>
    >>> drawn.annotations.annotator_kinds.tolist()
    ['model', 'model', 'model', 'model', 'person', 'person', 'person']
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    trap = _other(truth, n_classes, rng)
    late = np.arange(n_items) >= drift_after * n_items
    accuracy = judge_accuracy - drift * late
    rows: list[tuple[Integers, Integers, Integers, np.ndarray]] = []
    luck = rng.random(n_items)  # shared by the models
    for judge in range(n_judges):
        common = rng.random(n_items) < shared
        own = np.where(common, luck, rng.random(n_items))
        for _ in range(repeats):
            again = (
                own
                if repeats == 1
                else np.where(rng.random(n_items) < 0.8, own, rng.random(n_items))
            )
            right = again < accuracy
            wrong = np.where(common, trap, _other(truth, n_classes, rng))
            logit = rng.normal(np.where(right, 2.0, 0.5), 1.0)
            every = np.arange(n_items)
            rows.append(
                (
                    every,
                    np.full(n_items, judge),
                    np.where(right, truth, wrong),
                    1 / (1 + np.exp(-logit)),
                )
            )
    labelled = np.sort(rng.permutation(n_items)[: n_items if n_labelled is None else n_labelled])
    who = rng.permuted(np.tile(np.arange(n_people), (len(labelled), 1)), axis=1)
    for number in range(min(per_item, n_people)):
        right = rng.random(len(labelled)) < person_accuracy
        label = np.where(right, truth[labelled], _other(truth[labelled], n_classes, rng))
        rows.append((labelled, n_judges + who[:, number], label, np.full(len(label), np.nan)))
    item, annotator, label, confidence = (np.concatenate(part) for part in zip(*rows, strict=True))
    annotators = [f"model:m{judge + 1}" for judge in range(n_judges)]
    annotators += [f"p{person + 1}" for person in range(n_people)]
    annotations = Annotations.from_codes(
        item,
        annotator,
        label,
        items=numbered(n_items),
        annotators=annotators,
        classes=numbered(n_classes),
        annotator_kinds=["model"] * n_judges + ["person"] * n_people,
        confidence=confidence,
        time=item.astype(float),
    )
    return JudgedItems(annotations, truth)


def _other(label: Integers, n_classes: int, rng: np.random.Generator) -> Integers:
    """Return another class for each."""
    return (label + rng.integers(1, max(n_classes, 2), size=len(label))) % n_classes
