"""Texts with several annotators, for studies in which a method sees the majority label alone.

Of every set a fixed number of items is taken, drawn once; an item's aggregated label is the
majority of its annotators, ties drawn by item. Splits are by item: 70 % to learn from, 10 % that
methods may use to choose among settings, 20 % to test.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dissensus import Annotations

DATA = Path(__file__).parents[3] / "shared" / "data"
LENGTH = 64  # tokens of a text


@dataclass(frozen=True)
class SoftSet:
    """One set: annotations, texts, and the majority label."""

    name: str
    annotations: Annotations
    texts: tuple[str, ...]
    label: Any  # (item): majority, ties at random

    @property
    def share(self) -> Any:
        """Shares of the annotators: (item, class)."""
        votes = self.annotations.votes()
        return votes / votes.sum(axis=1, keepdims=True)

    @property
    def count(self) -> Any:
        """How many annotations every item has: (item)."""
        return self.annotations.labels_per_item


class Split(NamedTuple):
    """Items by what they serve for."""

    train: Any
    valid: Any
    test: Any


def split_of(n_items: int, seed: int) -> Split:
    order = np.random.default_rng([seed, 0x5F17]).permutation(n_items)
    first, second = round(0.7 * n_items), round(0.8 * n_items)
    return Split(np.sort(order[:first]), np.sort(order[first:second]), np.sort(order[second:]))


def soft_set(name: str) -> SoftSet:
    """Return a set by its name."""
    folder, most = SETS[name]
    rows = rows_of(folder / "tasks.csv.gz")
    if name == "mp_en":
        rows = [row for row in rows if row["lang"] == "en"]
    texts = {row["task"]: _text(row) for row in rows}
    answers = [
        row for row in rows_of(folder / "answers.csv.gz") if row["task"] in texts and row["label"]
    ]
    annotations = Annotations.from_columns(
        [row["task"] for row in answers],
        [row["worker"] for row in answers],
        [row["label"] for row in answers],
    )
    enough = annotations.items[annotations.labels_per_item >= 3]
    annotations = annotations.subset(items=np.random.default_rng(7).permutation(enough)[:most])
    votes = annotations.votes()
    tied = votes + np.random.default_rng(11).random(votes.shape) * 0.5
    return SoftSet(
        name, annotations, tuple(texts[item] for item in annotations.items), tied.argmax(axis=1)
    )


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a compressed table."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _text(row: dict[str, str]) -> str:
    if "reply" in row:
        return f"{row['reply']} [SEP] {row['post']}"
    if "response" in row:
        return f"{row['response']} [SEP] {row['context']}"
    return row["text"]


SETS = {
    "hs_brexit": (DATA / "lewidi_hs_brexit", 10**6),
    "md_agreement": (DATA / "lewidi_md_agreement", 3000),
    "gwsd": (DATA / "gwsd", 10**6),
    "mp_en": (DATA / "lewidi_mp", 10**6),
    "mbic": (DATA / "mbic", 10**6),
    "medrel_treat": (DATA / "medrel_treat", 2000),
    # Those by which settings were chosen; no table shows them.
    "babe_sg1": (DATA / "babe_sg1", 10**6),
    "babe_sg2": (DATA / "babe_sg2", 2000),
    "offensive_spans": (DATA / "offensive_spans", 10**6),
    "subjective_discourse": (DATA / "subjective_discourse", 10**6),
    "csc": (DATA / "lewidi_csc", 10**6),
    "sentiment_polarity": (DATA / "sentiment_polarity", 2000),
}
TESTED = ("hs_brexit", "md_agreement", "gwsd", "mp_en", "mbic", "medrel_treat")
