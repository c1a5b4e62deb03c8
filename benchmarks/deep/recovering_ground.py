"""Methods and sets of the studies of recovery; fits are stored in `out/recovering`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from time import process_time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.stats import t as student

from crowds import OUT
from dissensus import Annotations
from dissensus.base.probability import temper
from dissensus.deep.nn.features import Features, features_of
from dissensus.deep.recovery.base import vote_slope
from dissensus.registry import recoverers
from soft_sets import LENGTH, SoftSet, soft_set, split_of

PAGE, HOME = "recovering", OUT / "recovering"
SPLITS = 3
REFERENCE, ORACLE, FLOOR, PEOPLE = "single", "ldl", "marginal", "people asked again"
SHOWN = ("manhattan", "jensen_shannon", "unbiased_squared", "cross_entropy", "entropy_pearson")
HARD = ("accuracy", "macro_f1")
HEADS = ["MD", "JSD", "USQ", "CE", "EC", "accuracy", "F1"]
# Rows of the tables: (name, method, prediction).
ROWS: list[tuple[str, str, str]] = [
    (FLOOR, "marginal", "proba"),
    (REFERENCE, "single", "proba"),
    ("single, T by validation", "single[temperature=True]", "proba"),
    ("single, labels smoothed .1", "single[smoothing=0.1]", "proba"),
    ("mc-dropout", "mc-dropout", "proba"),
    ("bayes-head", "bayes-head", "proba"),
    ("deep-ensemble (5)", "deep-ensemble", "proba"),
    ("heads (10 strict seeds), mean", "seeds", "proba"),
    ("heads (10 strict seeds), votes", "seeds", "votes"),
    ("heads, mean, T = slope^.5", "seeds", "half"),
    ("bagged-heads (10), mean", "bagged-heads", "proba"),
    ("bagged-heads (10), votes", "bagged-heads", "votes"),
    ("attention-heads (5), mean", "attention-heads", "proba"),
    ("attention-heads (5), votes", "attention-heads", "votes"),
    ("kernel-ridge", "kernel-ridge", "proba"),
    ("auto", "auto", "proba"),
    ("auto, unknown vote count", "auto", "plain"),
    ("auto, T = slope^.5", "auto", "half"),
    ("auto, votes of members", "auto", "votes"),
    ("multi-task (oracle)", "multi-task", "proba"),
    ("ldl, one network (oracle)", "ldl[n=1]", "proba"),
    (ORACLE, "ldl", "proba"),
]


@lru_cache(maxsize=2)
def loaded(name: str) -> tuple[SoftSet, Features]:
    """Return a set and its features: vectors and tokens of MiniLM, and the texts."""
    data = soft_set(name)
    encoder = f"minilm[length={LENGTH}]"
    return data, features_of(list(data.texts), encoder, tokens=True, raw=True)


def stored(name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return arrays that are stored under this name, or measure and store them."""
    path = HOME / f"{re.sub(r'[^A-Za-z0-9_.=,-]+', '-', name)}.npz"
    if path.exists():
        with np.load(path) as arrays:
            return dict(arrays)
    measured = {key: np.asarray(value) for key, value in measure().items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    with draft.open("wb") as file:
        np.savez(file, **measured)
    draft.rename(path)
    return measured


def fitted(
    features: Features,
    annotations: Annotations,
    label: Any,
    train: Any,
    test: Any,
    spec: str,
    seed: int,
) -> dict[str, Any]:
    """Fit once, and predict the test items."""
    start = process_time()
    method = recoverers.create(spec)
    features = features.only((*method.needs, *method.uses))
    model = method.fit(
        features.take(train),
        label[train],
        n_classes=annotations.n_classes,
        vote_count=annotations.labels_per_item[train],
        annotations=annotations.take(train),
        seed=seed,
    )
    seconds, there = process_time() - start, features.take(test)
    p = model.predict_proba(there)
    slope = vote_slope(annotations.labels_per_item[train])
    plain = temper(
        p, np.full(len(p), 1 / slope**method.flatten)
    )  # as if the vote count were not known
    summary = {"proba": p, "votes": model.votes(there), "plain": plain, "seconds": seconds}
    return summary | {
        "half": temper(plain, np.full(len(p), slope**0.5)),
        "chosen": model.predict(there),
    }


def measured(name: str, split: int, spec: str) -> dict[str, Any]:
    """Return the predictions of a method on a split of a set."""

    def work() -> dict[str, Any]:
        data, features = loaded(name)
        parts = split_of(len(data.texts), split)
        train = np.sort(np.concatenate([parts.train, parts.valid]))
        arrays = fitted(features, data.annotations, data.label, train, parts.test, spec, split)
        print(f"{name:14s} {split} {spec:44s} {arrays['seconds']:.1f} s", flush=True)
        return arrays

    return stored(f"{name}-{split}-{spec}", work)


def votes_of(name: str, split: int) -> Any:
    data = soft_set_of(name)
    return data.annotations.votes()[split_of(len(data.texts), split).test]


@lru_cache(maxsize=16)
def soft_set_of(name: str) -> SoftSet:
    return soft_set(name)


def interval(values: Sequence[float]) -> str:
    """Return a mean and half the width of its 95 % interval over splits."""
    known = np.array(values)[~np.isnan(values)]
    if not len(known):
        return "–"
    if len(known) < 2:
        return f"{known[0]:.3f}"
    half = student.ppf(0.975, len(known) - 1) * known.std(ddof=1) / len(known) ** 0.5
    return f"{known.mean():.3f} ± {half:.3f}"
