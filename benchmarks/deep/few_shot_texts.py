"""Few-shot learning of texts: a model of several sets, adapted to one that was held out.

The model is a linear map on MiniLM's vectors, trained on episodes of the other sets. A target task
is some items of the held-out set with five labels each, and 400 further items to be classified.
Beside it stands what does not know the other sets: Dawid & Skene (or majorities), then logistic
regression on the same vectors, under four penalties.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from dissensus import Annotations, read
from dissensus.deep.meta.episodes import Sizes
from dissensus.deep.meta.few_shot import FewShotCrowd
from dissensus.deep.meta.pseudo_annotators import PseudoAnnotators, annotate
from dissensus.deep.nn import Training
from dissensus.registry import aggregators
from kept import kept
from learning import DATA
from text_tasks import SETS, features_of, texts_of

__all__ = [
    *("CROWD", "ITEMS", "PER_ITEM", "TARGETS"),
    *("crowd_of", "curve", "labels_of", "model_of", "regression"),
]

ITEMS = (10, 20, 50, 100, 200)
# Held out, and which others go with it because they hold the same sentences or task.
TARGETS = {
    "sentiment": ("sst",),
    "mbic": ("babe", "babe topics"),
    "md": ("md domains",),
    "politeness": (),
}
_ANSWERS = {"sentiment": "sentiment_polarity", "mbic": "mbic", "md": "lewidi_md_agreement"}
PER_ITEM, _QUERIES = 5, 400
CROWD = PseudoAnnotators(spammers=(0.0, 0.4), accuracy=(0.6, 1.0), per_item=float(PER_ITEM))


@lru_cache(maxsize=2)
def model_of(target: str, head: str = "linear") -> FewShotCrowd:
    """Return a model that has not seen a set, nor what belongs to it."""
    names = [name for name in SETS if name != target and name not in TARGETS[target]]
    x, label, task = [], [], []
    for name in names:
        found = texts_of(name)
        x.append(np.asarray(features_of(found.text)))
        label += found.label
        task += [name] * len(found.label)
    model = FewShotCrowd(
        "em-full;em-one-coin;em-kinds[steps=3];em-kinds[steps=3,starts=everyone]",
        head=head,  # type: ignore[arg-type]
        objective="em-full",
        sizes=Sizes(ways=(2,), shots=(5, 10, 25, 75), annotators=(5, 20, 80), queries=15),
        annotators=CROWD,
        training=Training(epochs=8, batch=32, lr=3e-4, scheduler="cosine", held_out=0.0),
        episodes=3200,
        tuning=150,
    )
    return model.fit(np.concatenate(x), label, task=task)


def crowd_of(target: str, items: list[str]) -> Annotations | None:
    """Return the set's own annotations of these items."""
    if target not in _ANSWERS:
        return None
    annotations = read(DATA / _ANSWERS[target] / "answers.csv.gz")
    order = {name: code for code, name in enumerate(items)}
    code = np.array([order.get(name, -1) for name in annotations.items.tolist()])[annotations.item]
    kept_rows = code >= 0
    return Annotations.from_codes(
        code[kept_rows],
        annotations.annotator[kept_rows],
        annotations.label[kept_rows],
        items=len(items),
        annotators=annotations.annotators,
        classes=annotations.classes,
    )


def _some(rng: np.random.Generator, truth: Any, n: int, able: Any) -> Any:
    """Return items to be labelled, of every class at least two, and queries."""
    while True:
        order = rng.permutation(np.flatnonzero(able))[:n]
        if np.bincount(truth[order], minlength=2).min() >= 2:
            break
    rest = np.setdiff1d(np.arange(len(truth)), order)
    return order, rng.permutation(rest)[:_QUERIES]


def labels_of(
    rng: np.random.Generator, annotations: Annotations | None, items: Any, truth: Any
) -> Any:
    """Return five labels of every item, by its own annotators or by pseudo-annotators."""
    if annotations is None:
        confusion = CROWD.draw(rng, 1, PER_ITEM, 2)
        return annotate(rng, confusion, truth[items][None])[0]
    mine = annotations.take(items)
    lot = rng.random(len(mine))
    order = np.lexsort([lot, mine.item])
    rank = np.arange(len(mine)) - mine.index[mine.item[order]]
    kept_rows = order[rank < PER_ITEM]
    who, position = np.unique(mine.annotator[kept_rows], return_inverse=True)
    found = np.full((len(items), len(who)), -1)
    found[mine.item[kept_rows], position] = mine.label[kept_rows]
    return found


def regression(x: Any, label: Any, query: Any, c: float) -> Any:
    if len(np.unique(label)) < 2:
        return np.full(len(query), label[0])
    return LogisticRegression(C=c, max_iter=1000).fit(x, label).predict(query)


def curve(target: str, pseudo: bool, n: int = 100) -> dict[str, Any]:
    """Return accuracies by method and number of items: (draw) each, kept; and balanced ones."""

    def measure() -> dict[str, Any]:
        summary = texts_of(target)
        classes = sorted(set(summary.label))
        truth = np.array([classes.index(label) for label in summary.label])
        x = np.asarray(features_of(summary.text))
        crowd = None if pseudo else crowd_of(target, summary.item)
        if crowd is not None:
            crowd = crowd.recode(classes)
        able = np.ones(len(x), bool) if crowd is None else crowd.labels_per_item >= PER_ITEM
        able = able if able.sum() > 400 else crowd.labels_per_item >= 3  # type: ignore[union-attr]
        models = {head: model_of(target, head) for head in ("linear", "none")}
        scaled = models["none"].embedding_(torch.from_numpy(x)).numpy() * 384**0.5
        found: dict[str, list[float]] = {}
        balanced: dict[str, list[float]] = {}
        for size in ITEMS:
            rng = np.random.default_rng([size, 7])
            for _ in range(n):
                items, query = _some(rng, truth, size, able)
                label = labels_of(rng, crowd, items, truth)
                annotations = Annotations.from_matrix(label, classes=range(len(classes)))
                guesses = {
                    f"ours, {head}": model.adapt(x[items], annotations)
                    .predict(x[query])
                    .astype(int)
                    for head, model in models.items()
                }
                for name in ("dawid-skene-map", "majority"):
                    labels = aggregators.create(name).fit(annotations, seed=0).label
                    for c in (0.001, 0.01, 0.1, 1.0):
                        guesses[f"{name} + regression, C = {c}"] = regression(
                            scaled[items], labels, scaled[query], c
                        )
                clean = regression(scaled[items], truth[items], scaled[query], 0.01)
                guesses["true labels + regression, C = 0.01"] = clean
                for name, guess in guesses.items():
                    right = guess == truth[query]
                    found.setdefault(f"{name}|{size}", []).append(round(float(right.mean()), 4))
                    each = [float(right[truth[query] == k].mean()) for k in range(len(classes))]
                    position = balanced.setdefault(f"{name}|{size}", [])
                    position.append(round(float(np.mean(each)), 4))
        chosen = {head: model.adapter_ for head, model in models.items()}
        share = float(np.bincount(truth).max() / len(truth))
        return {"found": found, "balanced": balanced, "chosen": chosen, "share": share}

    return kept("meta", f"transfer {target} {'pseudo' if pseudo else 'crowd'}", measure)
