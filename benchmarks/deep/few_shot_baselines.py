"""Few-shot baselines on Omniglot: those that know no source tasks, and those trained in other ways.

From scratch on the support alone, on pixels: logistic regression, nearest neighbours and random
forests on aggregated labels, CrowdLayer and Raykar's EM. Trained on the source: a ridge head, a
conditional neural process, MAML and first-order MAML, each with an embedding of its own that
begins from the network trained on clean supports.
"""

from __future__ import annotations

from copy import deepcopy
from time import process_time
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from crowds import OUT
from dissensus import Annotations
from dissensus.deep.learning.classifier import CrowdClassifier
from dissensus.deep.meta.base import EpisodeLearner
from dissensus.deep.meta.episodes import EpisodeSource, Sizes
from dissensus.deep.meta.pseudo_annotators import PseudoAnnotators
from dissensus.deep.meta.tuning import score
from dissensus.deep.nn import Training, train
from dissensus.registry import adapters, aggregators
from few_shot_nets import net
from kept import kept
from omniglot import cells, characters

__all__ = ["SCRATCH", "TRAINED", "scratch", "trained"]

SCRATCH = {
    "majority + regression": ("majority", lambda: LogisticRegression(C=1.0, max_iter=300)),
    "majority + nearest": ("majority", lambda: KNeighborsClassifier(1)),
    "majority + forest": ("majority", lambda: RandomForestClassifier(50, random_state=0)),
    "dawid-skene-map + regression": (
        "dawid-skene-map",
        lambda: LogisticRegression(C=1.0, max_iter=300),
    ),
    "dawid-skene-map + nearest": ("dawid-skene-map", lambda: KNeighborsClassifier(1)),
    "dawid-skene-map + forest": (
        "dawid-skene-map",
        lambda: RandomForestClassifier(50, random_state=0),
    ),
    "crowd-layer": ("crowd-layer", None),
    "raykar": ("raykar[folds=0,volume=0]", None),
}
_SLOW = ("crowd-layer", "raykar")
# Adapter, epochs of 100 batches, episodes in a batch. The size of MAML's steps was chosen on the
# validation alphabets, before training, from .05 (.29 right) to 8 (.44): 2 and 4 have .77.
TRAINED = {
    "ridge": ("ridge", 10, 32),
    "cnp": ("cnp", 60, 32),
    "maml": ("maml[steps=5,lr=2.0]", 6, 4),
    "fomaml": ("maml[steps=5,lr=2.0,first_order=True]", 12, 4),
}


def _guess(kind: str, make: Any, x: Any, label: Any, query: Any) -> Any:
    annotations = Annotations.from_matrix(label, classes=range(5))
    if make is None:
        training = Training(epochs=25, held_out=0.0)
        made = CrowdClassifier(kind, hidden=0, dropout=0.0, input_dropout=0.0, training=training)
        return made.fit(x, annotations).predict(query).astype(int)
    found = aggregators.create(kind).fit(annotations, seed=0).label
    if len(np.unique(found)) == 1:
        return np.full(len(query), found[0])
    return make().fit(x, found).predict(query)


def scratch(name: str, condition: str = "independent") -> dict[str, Any]:
    """Return accuracies of a method on pixels of the support alone, by cell; kept."""

    def measure() -> dict[str, Any]:
        kind, make = SCRATCH[name]
        each = 4 if name in _SLOW else 20
        rows = []
        for (shots, annotators, ratio), some in cells(characters().test, condition, each):
            x = some.x.flatten(1).numpy()
            right = []
            for number in range(each):
                guess = _guess(
                    kind,
                    make,
                    x[some.support[number]],
                    some.label[number].numpy(),
                    x[some.query[number]],
                )
                right.append(float((guess == some.truth[number].numpy()).mean()))
            rows.append(
                {"shots": shots, "annotators": annotators, "ratio": ratio, "accuracy": right}
            )
        return {"rows": rows}

    return kept("meta", f"scratch {name} {condition}", measure)


def trained(name: str, condition: str = "independent") -> dict[str, Any]:
    """Return accuracies of an adapter trained with an embedding of its own, by cell; kept."""

    def measure() -> dict[str, Any]:
        spec, epochs, batch = TRAINED[name]
        every, embedding = characters(), deepcopy(net("clean"))
        adapter = adapters.create(spec).build(embedding.width, 5)
        maml = name.endswith("maml")
        settings = Training(
            epochs=epochs, batch=batch, lr=5e-4, scheduler="cosine", held_out=0.0, clip=5.0,
            precision="32" if maml else "bf16",
        )  # fmt: skip
        learner = EpisodeLearner(embedding, adapter, settings.lr)
        pool = {"pool_classes": 5} if maml else {}
        source = EpisodeSource(every.train, Sizes(**pool), PseudoAnnotators(), 100 * batch)
        began = process_time()
        train(learner, source, settings, folder=OUT / "meta" / "nets" / name, resume=True)
        adapter.eval()
        seconds = process_time() - began
        rows = []
        for (shots, annotators, ratio), some in cells(every.test, condition, 20 if maml else 100):
            found = score(adapter, [some], embedding.eval())
            summary = {"shots": shots, "annotators": annotators, "ratio": ratio}
            rows.append({**summary, "accuracy": np.round(found.accuracy, 4).tolist()})
        return {"rows": rows, "seconds": seconds}

    return kept("meta", f"taught {name} {condition}", measure)


if __name__ == "__main__":
    import sys

    torch.set_num_threads(1)
    for each in sys.argv[1:]:
        (scratch if each in SCRATCH else trained)(each)
        print(each, flush=True)
