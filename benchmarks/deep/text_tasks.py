"""Shared text sets as tasks: texts, their classes, and through MiniLM their features.

A class is the majority label, ties left out; or gold, topic or domain where the name says
so. At most `MOST` items of a set are taken, always the same.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dissensus import read, read_truth
from learning import DATA

__all__ = ["SETS", "TextTask", "features_of", "texts_of"]

MOST = 1500


class TextTask(NamedTuple):
    """One set."""

    item: list[str]
    text: list[str]
    label: list[str]


def _rows(name: str) -> list[dict[str, str]]:
    with gzip.open(DATA / name / "tasks.csv.gz", "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _majority(name: str, column: str = "text", lang: str | None = None) -> TextTask:
    annotations = read(DATA / name / "answers.csv.gz")
    votes = annotations.votes()
    clear = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) == 1
    best = dict(
        zip(
            annotations.items.tolist(),
            annotations.classes[votes.argmax(axis=1)].tolist(),
            strict=True,
        )
    )
    sure = set(annotations.items[clear].tolist())
    rows = [row for row in _rows(name) if row["task"] in sure]
    rows = [row for row in rows if lang is None or row.get("lang") == lang]
    return _cut([(row["task"], row[column], best[row["task"]]) for row in rows])


def _gold(name: str) -> TextTask:
    truth = read_truth(DATA / name / "truth.csv.gz")
    found = [(r["task"], r["text"], truth[r["task"]]) for r in _rows(name) if r["task"] in truth]
    return _cut(found)


def _column(name: str, column: str) -> TextTask:
    return _cut([(row["task"], row["text"], row[column]) for row in _rows(name) if row[column]])


def _halves(name: str, column: str, low: float, high: float) -> TextTask:
    """Return the items whose mean answer is low or high, the middle left out."""
    total: dict[str, list[float]] = {}
    with gzip.open(DATA / name / "answers.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            total.setdefault(row["task"], []).append(float(row["label"]))
    mean = {task: float(np.mean(values)) for task, values in total.items()}
    ends = np.quantile(list(mean.values()), [low, high])
    rows = [row for row in _rows(name) if row["task"] in mean and row.get("lang", "en") == "en"]
    found = [
        (row["task"], row[column], "low" if mean[row["task"]] <= ends[0] else "high")
        for row in rows
        if not ends[0] < mean[row["task"]] < ends[1]
    ]
    return _cut(found)


def _cut(rows: list[tuple[str, str, str]]) -> TextTask:
    order = np.random.default_rng(0).permutation(len(rows))[:MOST]
    return TextTask(
        *(list(column) for column in zip(*(rows[i] for i in sorted(order)), strict=True))
    )


SETS: dict[str, Callable[[], TextTask]] = {
    "babe": lambda: _majority("babe_sg2"),
    "babe topics": lambda: _column("babe_sg2", "topic"),
    "brexit": lambda: _majority("lewidi_hs_brexit"),
    "climate": lambda: _majority("gwsd"),
    "discourse": lambda: _majority("subjective_discourse"),
    "irony": lambda: _majority("lewidi_mp", "reply", "en"),
    "mbic": lambda: _gold("mbic"),
    "md": lambda: _majority("lewidi_md_agreement"),
    "md domains": lambda: _column("lewidi_md_agreement", "domain"),
    "medical": lambda: _gold("medrel_treat"),
    "offensive": lambda: _majority("offensive_spans"),
    "politeness": lambda: _halves("politeness_wikipedia", "text", 0.25, 0.75),
    "sarcasm": lambda: _halves("lewidi_csc", "response", 0.4, 0.7),
    "sentiment": lambda: _gold("sentiment_polarity"),
    "sst": lambda: _gold("sst5"),
}


def texts_of(name: str) -> TextTask:
    """Return a set by its name."""
    return SETS[name]()


def features_of(texts: list[str]) -> Any:
    """Return MiniLM's vectors: (item, 384), from the cache if they are there."""
    import torch

    from dissensus.deep.nn import Texts
    from dissensus.deep.nn.features import features_of as encoded

    return torch.from_numpy(encoded(Texts(tuple(texts)), "minilm").vectors)


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    for name in SETS:
        task = texts_of(name)
        x = features_of(task.text)
        classes, counts = np.unique(task.label, return_counts=True)
        summary = dict(zip(classes.tolist(), counts.tolist(), strict=True))
        print(name, tuple(x.shape), summary, flush=True)
