"""Where people disagree, and over what: kappas of questions, and the words they point at.

Two people may differ because they look elsewhere, or because they read the same words in another
way. If they mark the words behind their label, the first shows as little overlap of these marks.
On a circle of labels (of emotions, for instance) the study behind SeedBERT found that people with
the same or neighbouring labels mark the same words, and those with opposite labels others;
`highlight_overlap` measures that, and tests it by dealing the marks of an item anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from .._relation import Floats, Integers
from ..agreement import conger_kappa, item_agreement, split_options
from ..annotations import Annotations
from ..errors import DataError
from .measures import entropy, shares_of

__all__ = [
    "Marked",
    "Overlap",
    "Subjectivity",
    "highlight_overlap",
    "item_subjectivity",
    "label_distance",
    "question_kappas",
]


def question_kappas(
    questions: Mapping[str, Annotations], *, multiple: Sequence[str] = (), mark: str = "|"
) -> dict[str, float]:
    """Return Conger's kappa of every question.

    Parameters
    ----------
    questions
        Annotations by question.
    multiple
        Questions whose labels name several options with `mark` between them: each option is then
        a question of its own, yes or no, and the kappa is the mean of these.
    """
    found = {}
    for name, question in questions.items():
        parts = list(split_options(question, mark).values()) if name in multiple else [question]
        kappas = np.array([conger_kappa(part) for part in parts])
        known = kappas[~np.isnan(kappas)]
        found[name] = float(known.mean()) if len(known) else np.nan
    return found


class Subjectivity(NamedTuple):
    """How much people disagree on every item, and whether a model knows."""

    entropy: Floats  # (item): of the shares, in bits
    disagreement: Floats  # (item): share of pairs of people who differ; NaN with one vote
    correlation: float  # of ranks, of the model's uncertainty with the entropy; NaN without


def item_subjectivity(annotations: Annotations, uncertainty: Floats | None = None) -> Subjectivity:
    """Return how much people disagree on every item.

    Parameters
    ----------
    annotations
        What they said.
    uncertainty
        A model's, of the same items: the entropy of its votes, for instance.
    """
    spread = entropy(shares_of(annotations.votes()))
    together = 1 - item_agreement(annotations)
    rank = np.nan if uncertainty is None else float(spearmanr(uncertainty, spread).statistic)
    return Subjectivity(spread, together, rank)


class Marked(NamedTuple):
    """One person's label on an item, and the words they marked."""

    item: int
    label: int
    words: frozenset[int]


class Overlap(NamedTuple):
    """Mean overlap of marks, by how far the labels of two people are from each other."""

    by_distance: dict[int, float]  # 0: the same label, 1: neighbours, …
    pairs: dict[int, int]
    near_minus_far: float  # same and neighbouring labels less all others
    p_value: float  # share of deals with a difference as large


def label_distance(n_classes: int, *, circle: bool = True) -> Integers:
    """Return how many steps labels are apart, on a circle or on a line: (class, class).

    >>> label_distance(4).tolist()[0]
    [0, 1, 2, 1]
    """
    steps = np.abs(np.arange(n_classes)[:, None] - np.arange(n_classes))
    return np.minimum(steps, n_classes - steps) if circle else steps


def highlight_overlap(
    marks: Sequence[Marked], distance: Integers, *, draws: int = 2000, seed: int = 0
) -> Overlap:
    """Return how much people with the same, neighbouring and other labels mark the same words.

    The overlap of two people is the share of words that both marked among those that one did
    (Jaccard). The test deals the labels of every item anew among those who marked it.

    Parameters
    ----------
    marks
        One for every person and item; who marked nothing is left out.
    distance
        Steps between labels: (class, class).
    draws
        How often labels are dealt.
    seed
        Decides how.
    """
    marks = [mark for mark in marks if mark.words]
    item = np.array([mark.item for mark in marks])
    label = np.array([mark.label for mark in marks])
    one, other = _pairs(item)
    if not len(one):
        raise DataError("no item was marked by two people; nothing to compare")
    shared = np.array([
        len(marks[a].words & marks[b].words) / len(marks[a].words | marks[b].words)
        for a, b in zip(one, other, strict=True)
    ])  # fmt: skip
    apart = distance[label[one], label[other]]
    seen = _difference(shared, apart)
    random = np.random.default_rng(seed)
    as_large = 0
    for _ in range(draws):
        dealt = label[np.lexsort((random.random(len(item)), item))]
        back = np.empty_like(label)
        back[np.argsort(item, kind="stable")] = dealt
        as_large += _difference(shared, distance[back[one], back[other]]) >= seen - 1e-12
    steps = np.unique(apart).tolist()
    return Overlap(
        {step: float(shared[apart == step].mean()) for step in steps},
        {step: int((apart == step).sum()) for step in steps},
        seen,
        (as_large + 1) / (draws + 1),
    )


def _pairs(item: Integers) -> tuple[Integers, Integers]:
    """Return all pairs of marks on the same item."""
    found = [
        pair
        for each in np.unique(item)
        for pair in zip(*(np.flatnonzero(item == each)[k] for k in _two(item, each)), strict=True)
    ]
    pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _two(item: Integers, each: int) -> tuple[Integers, Integers]:
    return np.triu_indices(int((item == each).sum()), 1)


def _difference(shared: Floats, apart: Integers) -> float:
    near = apart <= 1
    if near.all() or not near.any():
        return np.nan
    return float(shared[near].mean() - shared[~near].mean())
