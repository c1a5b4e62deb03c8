"""Where annotators disagree, and over what: kappas of questions, and the words they highlight.

Two annotators may differ because they attend to other words, or because they read the same words
differently. If they highlight the words behind their label, the first shows as little overlap. On a
circle of labels (of emotions, for instance) the study behind SeedBERT found that annotators with
the same or neighbouring labels highlight the same words, and those with opposite labels others;
`highlight_overlap` measures that, with a permutation test.
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


def question_kappas(
    questions: Mapping[str, Annotations], *, multiple: Sequence[str] = (), mark: str = "|"
) -> dict[str, float]:
    """Return Conger's kappa of every question.

    Parameters
    ----------
    questions
        Annotations by question.
    multiple
        Questions whose labels hold several options with `mark` between them: each option is then
        a yes-no question of its own, and the kappa is the mean over these.
    """
    kappas = {}
    for name, question in questions.items():
        parts = list(split_options(question, mark).values()) if name in multiple else [question]
        values = np.array([conger_kappa(part) for part in parts])
        known = values[~np.isnan(values)]
        kappas[name] = float(known.mean()) if len(known) else np.nan
    return kappas


class Subjectivity(NamedTuple):
    """Disagreement on every item, and its correlation with a model's uncertainty."""

    entropy: Floats  # (item): of the label shares, in bits
    disagreement: Floats  # (item): share of pairs of annotators that differ; NaN with one vote
    correlation: float  # Spearman's, of uncertainty and entropy; NaN without uncertainty


def item_subjectivity(annotations: Annotations, uncertainty: Floats | None = None) -> Subjectivity:
    """Return how much annotators disagree on every item.

    Parameters
    ----------
    annotations
        All annotations.
    uncertainty
        A model's, of the same items: the entropy of its votes, for instance.
    """
    spread = entropy(shares_of(annotations.votes()))
    rank = np.nan if uncertainty is None else float(spearmanr(uncertainty, spread).statistic)
    return Subjectivity(spread, 1 - item_agreement(annotations), rank)


class Highlight(NamedTuple):
    """One annotator's label on an item, and the words they highlighted."""

    item: int
    label: int
    words: frozenset[int]


class Overlap(NamedTuple):
    """Mean overlap of highlights, by the distance of the two labels."""

    by_distance: dict[int, float]  # 0: the same label, 1: neighbours, …
    pairs: dict[int, int]
    near_minus_far: float  # same and neighbouring labels less all others
    p_value: float


def label_distance(n_classes: int, *, circle: bool = True) -> Integers:
    """Return the number of steps between labels, on a circle or on a line: (class, class).

    >>> label_distance(4).tolist()[0]
    [0, 1, 2, 1]
    """
    steps = np.abs(np.arange(n_classes)[:, None] - np.arange(n_classes))
    return np.minimum(steps, n_classes - steps) if circle else steps


def highlight_overlap(
    highlights: Sequence[Highlight], distance: Integers, *, draws: int = 2000, seed: int = 0
) -> Overlap:
    """Return the overlap of highlights of annotators with the same, neighbouring and other labels.

    The overlap of two annotators is Jaccard's index of their words. The test permutes the labels of
    every item among the annotators who highlighted something in it.

    Parameters
    ----------
    highlights
        One for every annotator and item; empty ones are left out.
    distance
        Steps between labels: (class, class).
    draws
        Number of permutations.
    seed
        Random seed.
    """
    highlights = sorted((one for one in highlights if one.words), key=lambda one: one.item)
    item = np.array([one.item for one in highlights])
    label = np.array([one.label for one in highlights])
    starts = np.concatenate([[0], np.flatnonzero(np.diff(item)) + 1])
    sizes = np.diff([*starts, len(item)])
    pairs = [
        np.array(np.triu_indices(size, 1)) + start
        for start, size in zip(starts, sizes, strict=True)
    ]
    one, other = np.concatenate(pairs, axis=1)
    if not len(one):
        raise DataError("no item was highlighted by two annotators; nothing to compare")
    words = [each.words for each in highlights]
    pairs_of_words = [(words[a], words[b]) for a, b in zip(one, other, strict=True)]
    shared = np.array([len(a & b) / len(a | b) for a, b in pairs_of_words])
    apart = distance[label[one], label[other]]
    observed = _near_minus_far(shared, apart)
    random, as_large = np.random.default_rng(seed), 0
    for _ in range(draws):
        permuted = label[np.lexsort((random.random(len(item)), item))]
        permuted_apart = distance[permuted[one], permuted[other]]
        as_large += _near_minus_far(shared, permuted_apart) >= observed - 1e-12
    steps = np.unique(apart).tolist()
    return Overlap(
        {step: float(shared[apart == step].mean()) for step in steps},
        {step: int((apart == step).sum()) for step in steps},
        observed,
        (as_large + 1) / (draws + 1),
    )


def _near_minus_far(shared: Floats, apart: Integers) -> float:
    near = apart <= 1
    if near.all() or not near.any():
        return np.nan
    return float(shared[near].mean() - shared[~near].mean())
