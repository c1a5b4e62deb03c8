"""Small tasks whose classes are not equally frequent: what a learned weight of frequencies gains.

Ten sets of texts, left out in three folds: an adapter on MiniLM's vectors is tuned on the other
folds, with classes equally frequent, with the weight of class frequencies tuned on uneven
episodes, or with weight and temperature estimated in every task by leave-one-out. A target task is
some items as they come, with five labels each, by their own annotators or by pseudo-annotators, and
300 further items to be classified. Beside it stand logistic regression on the labels of Dawid &
Skene, and always the class that most items seem to have.
"""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from typing import Any

import numpy as np

from dissensus import Annotations
from dissensus.deep.meta.episodes import Sizes
from dissensus.deep.meta.few_shot import FewShotCrowd
from dissensus.registry import aggregators
from few_shot_texts import CROWD, crowd_of, labels_of, regression
from kept import kept
from text_tasks import TextTask, features_of, texts_of

__all__ = ["FOLDS", "ITEMS", "METHODS", "left_out"]

FOLDS = (
    ("md", "sentiment", "medical"),
    ("brexit", "mbic", "babe", "politeness"),  # mbic and babe hold the same sentences
    ("irony", "climate", "sarcasm"),
)
ITEMS = (10, 20, 50, 100)
METHODS = (
    *("equally frequent", "weighted frequencies", "leave-one-out"),
    *("regression", "larger class"),
)
_MOST, _QUERIES, _DRAWS = 600, 300, 40
_PENALTY = 0.001  # the best of four for the accuracy on uneven sets


@lru_cache
def _some(name: str) -> tuple[TextTask, Any]:
    """Return some items of the two largest classes of a set, and their features."""
    task = texts_of(name)
    chosen = np.sort(np.random.default_rng(1).permutation(len(task.text))[:_MOST])
    text = [task.text[each] for each in chosen]
    classes, count = np.unique([task.label[each] for each in chosen], return_counts=True)
    kept_classes = classes[np.argsort(-count, kind="stable")[:2]].tolist()
    x = np.asarray(features_of(text))
    rows = [n for n, each in enumerate(chosen) if task.label[each] in kept_classes]
    label = [task.label[chosen[n]] for n in rows]
    item = [task.item[chosen[n]] for n in rows]
    return TextTask(item, [text[n] for n in rows], label), x[rows]


@lru_cache
def _models(fold: int) -> dict[str, FewShotCrowd]:
    """Return an adapter tuned on the other folds, without and with the weight of frequencies.

    Tuning on uneven episodes changes this weight alone.
    """
    names = [name for number, some in enumerate(FOLDS) if number != fold for name in some]
    tasks = [_some(name) for name in names]
    model = FewShotCrowd(
        "em-kinds[steps=3]",
        sizes=Sizes(
            ways=(2,),
            shots=(5, 10, 25, 75),
            annotators=(5, 20, 80),
            queries=15,
            uneven=1.0,
            pool_items=100,
        ),
        annotators=CROWD,
        tuning=40,
    )
    label = [label for task, _ in tasks for label in task.label]
    task_of = [name for name, (task, _) in zip(names, tasks, strict=True) for _ in task.label]
    model.fit(np.concatenate([x for _, x in tasks]), label, task=task_of)
    even = deepcopy(model)
    even.model_.log_share_weight.data.fill_(-10)
    by_task = deepcopy(model)
    by_task.model_.leave_one_out = True
    return {"equally frequent": even, "weighted frequencies": model, "leave-one-out": by_task}


def left_out(name: str, pseudo: bool) -> dict[str, Any]:
    """Return accuracy, balanced accuracy and log-loss of every method and size; kept."""

    def measure() -> dict[str, Any]:
        fold = next(number for number, some in enumerate(FOLDS) if name in some)
        models = _models(fold)
        task, x = _some(name)
        classes = sorted(set(task.label))
        truth = np.array([classes.index(label) for label in task.label])
        crowd = None if pseudo else crowd_of(name, task.item)
        crowd = crowd if crowd is None else crowd.recode(classes)
        able = np.flatnonzero(np.ones(len(x)) if crowd is None else crowd.labels_per_item >= 3)
        found: dict[str, list[Any]] = {}
        for size in ITEMS:
            rng = np.random.default_rng([size, 7])
            for _ in range(_DRAWS):
                items = rng.permutation(able)[:size]
                while np.bincount(truth[items], minlength=2).min() == 0:
                    items = rng.permutation(able)[:size]
                query = rng.permutation(np.setdiff1d(np.arange(len(x)), items))[:_QUERIES]
                label = labels_of(rng, crowd, items, truth)
                annotations = Annotations.from_matrix(label, classes=range(2))
                p = {
                    each: model.adapt(x[items], annotations).predict_proba(x[query])
                    for each, model in models.items()
                }
                given = aggregators.create("dawid-skene-map").fit(annotations, seed=0).label
                guess = regression(x[items] * 384**0.5, given, x[query] * 384**0.5, _PENALTY)
                p["regression"] = np.eye(2)[guess]
                larger = np.bincount(given, minlength=2).argmax()
                p["larger class"] = np.eye(2)[np.full(len(query), larger)]
                for each, one in p.items():
                    right = one.argmax(axis=1) == truth[query]
                    by_class = [right[truth[query] == k].mean() for k in range(2)]
                    loss = -np.log(one[np.arange(len(query)), truth[query]].clip(1e-3)).mean()
                    row = [right.mean(), np.mean(by_class), loss]
                    found.setdefault(f"{each}|{size}", []).append(np.round(row, 4).tolist())
        weight = float(models["weighted frequencies"].model_.log_share_weight.exp())
        largest = float(np.bincount(truth).max() / len(truth))
        return {"found": found, "weight": weight, "largest": largest}

    return kept("meta", f"shares {name} {'pseudo' if pseudo else 'crowd'}", measure)
