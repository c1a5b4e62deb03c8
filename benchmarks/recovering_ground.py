"""What the studies of recovery share: methods, sets, and fits that are kept in `out/recovering`."""

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
from dissensus.recovery._base import Views
from dissensus.recovery._flattening import flattened, vote_slope
from dissensus.registry import recoverers
from soft_sets import LENGTH, SoftSet, soft_set, split_of

PAGE, HOME = "RECOVERING.md", OUT / "recovering"
SPLITS = 3
REFERENCE, ORACLE, FLOOR, PEOPLE = "single", "ldl", "marginal", "people asked again"
SHOWN = ("manhattan", "jensen_shannon", "unbiased_squared", "cross_entropy", "entropy_pearson")
HARD = ("accuracy", "macro_f1")
HEADS = ["MD", "JSD", "USQ", "CE", "EC", "accuracy", "F1"]
# What is fitted, and what is read off a fit: (name, specification, what).
ROWS: list[tuple[str, str, str]] = [
    (FLOOR, "marginal", "proba"),
    (REFERENCE, "single", "proba"),
    ("single, T by validation", "single[temperature=True]", "proba"),
    ("single, labels smoothed .1", "single[smoothing=0.1]", "proba"),
    ("mc-dropout", "mc-dropout", "proba"),
    ("bayes-head", "bayes-head", "proba"),
    ("deep-ensemble (5)", "deep-ensemble", "proba"),
    ("snapshot (5)", "snapshot", "proba"),
    ("heads (10 strict seeds), mean", "heads", "proba"),
    ("heads (10 strict seeds), votes", "heads", "votes"),
    ("heads, mean, T = slope^.5", "heads", "half"),
    ("bagged-heads (10), mean", "bagged-heads", "proba"),
    ("bagged-heads (10), votes", "bagged-heads", "votes"),
    ("attention-heads (5), mean", "attention-heads", "proba"),
    ("attention-heads (5), votes", "attention-heads", "votes"),
    ("attention-heads, diverse .1, mean", "attention-heads[diverse=0.1]", "proba"),
    ("knn", "knn", "proba"),
    ("kernel-ridge", "kernel-ridge", "proba"),
    ("auto", "auto", "proba"),
    ("auto, vote count not told", "auto", "plain"),
    ("auto, T = slope^.5", "auto", "half"),
    ("auto, votes of members", "auto", "votes"),
    ("multi-task (oracle)", "multi-task", "proba"),
    ("multi-task, entropy matched (oracle)", "multi-task[match=True]", "proba"),
    ("ldl, one network (oracle)", "ldl[n=1]", "proba"),
    (ORACLE, "ldl", "proba"),
]


@lru_cache(maxsize=2)
def loaded(name: str) -> tuple[SoftSet, Views]:
    """Return a set and its views: vectors and places of MiniLM, and the texts."""
    from dissensus.nn import as_inputs, encoder_for
    from dissensus.recovery._nets.features import views_of

    data = soft_set(name)
    inputs = as_inputs(list(data.texts))
    encoder = encoder_for(f"minilm[length={LENGTH}]", inputs)
    return data, views_of(encoder, inputs, ("vectors", "places", "raw"))


def stored(name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return arrays measured before under this name, or measure and keep them."""
    path = HOME / f"{re.sub(r'[^A-Za-z0-9_.=,-]+', '-', name)}.npz"
    if path.exists():
        with np.load(path) as kept:
            return dict(kept)
    found = {key: np.asarray(value) for key, value in measure().items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    with draft.open("wb") as file:
        np.savez(file, **found)
    draft.rename(path)
    return found


def fitted(
    views: Views, annotations: Annotations, label: Any, train: Any, test: Any, spec: str, seed: int
) -> dict[str, Any]:
    """Fit once, and look at the test items once."""
    began = process_time()
    method = recoverers.create(spec)
    views = views.only((*method.needs, *method.likes))
    found = method.fit(
        views.take(train),
        label[train],
        n_classes=annotations.n_classes,
        vote_count=annotations.labels_per_item[train],
        annotations=annotations.take(train),
        seed=seed,
    )
    seconds, there = process_time() - began, views.take(test)
    p = found.proba(there)
    slope = vote_slope(annotations.labels_per_item[train])
    plain = flattened(p, 1 / slope**method.flatten)  # as if the vote count were not known
    summary = {"proba": p, "votes": found.votes(there), "plain": plain, "seconds": seconds}
    return summary | {"half": flattened(plain, slope**0.5), "chosen": found.chosen(there)}


def measured(name: str, split: int, spec: str) -> dict[str, Any]:
    """Return what a method makes of a split of a set."""

    def work() -> dict[str, Any]:
        data, views = loaded(name)
        parts = split_of(len(data.texts), split)
        train = np.sort(np.concatenate([parts.train, parts.valid]))
        found = fitted(views, data.annotations, data.label, train, parts.test, spec, split)
        print(f"{name:14s} {split} {spec:44s} {found['seconds']:.1f} s", flush=True)
        return found

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
