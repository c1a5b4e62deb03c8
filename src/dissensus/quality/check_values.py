"""What is wrong with answers of other kinds than classes: numbers, sets, marks and rankings.

Of numbers, outliers of an item, and annotators who always give the same number; of the others,
empty, repeated and copied answers, names of labels, and one side in comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..answers import Answers
from ..answers.marks import Marks
from ..answers.numbers import Numbers
from ..answers.rankings import Rankings
from ..base.arrays import Floats
from ..errors import Note
from ..formats.spellings import classes_alike
from ..pages.sections import SERIOUS, Finding
from ..pages.wording import first_quoted, many, quoted, verb
from .label_scores import median_by

_LEAST = 5  # answers of an annotator, and common items of two
_MANY = 20  # answers in all
_APART = 0.05  # mean distance above which equal answers are remarkable
_PAIRS = 2_000_000  # pairs of answers to compare
_PSEUDO = 2.0  # pairs at the overall mean, added to those of an item
_ERROR = 0.01  # probability that any pair is equal by accident
_FAR = 8.0  # robust standard deviations
_ENOUGH = 10  # answers of an annotator to call them constant


def check_looked(marks: Marks) -> Iterator[Finding]:
    """Find that no answer is empty, although there are many."""
    if len(marks) >= _MANY and not marks.empty.any():
        yield Finding(
            "no-empty-answers",
            "No answer is empty, so nobody is known to have looked and marked nothing.",
            len(marks),
            remedy=Note(
                "",
                remedy="add a row without values for every such answer, or give {} FILE",
                assigned=...,
            ),
        )


def check_empty(answers: Answers) -> Iterator[Finding]:
    """Find annotators who mark nothing where others do."""
    empty, load = answers.empty, answers.labels_per_annotator
    blank = np.bincount(answers.annotator, empty, minlength=len(load))
    marked_items = np.bincount(answers.item, ~empty, minlength=answers.n_items) > 0
    marked = np.bincount(answers.annotator, marked_items[answers.item], minlength=len(load))
    never = np.flatnonzero((load >= _LEAST) & (blank == load) & (marked > 0))
    if len(never):
        yield Finding(
            "always-empty",
            f"{many(len(never), 'annotator')} only {verb(len(never), 'give')} empty answers where "
            "others mark something.",
            len(never),
            examples=first_quoted(answers.annotators[never]),
            remedy="identify shows what they miss",
        )


def check_repeated(answers: Answers) -> Iterator[Finding]:
    """Find several answers of one annotator to one item."""
    repeated = answers.repeats
    count = int(repeated.sum())
    if count:
        yield Finding(
            "repeats",
            f"{many(count, 'answer')} {verb(count, 'repeat')} an item for the same annotator, and "
            "all count.",
            count,
            examples=first_quoted(answers.items[np.unique(answers.item[1:][repeated])]),
            remedy=Note("", remedy="{} first or last keeps one", duplicates=...),
        )


def check_label_names(answers: Answers) -> Iterator[Finding]:
    """Find labels that differ only in spelling."""
    (field,) = answers.coded_by.values()
    names = getattr(answers, field)
    alike = classes_alike(names)
    if alike:
        yield Finding(
            "spellings",
            f"{many(len(alike), 'label')} {verb(len(alike), 'are')} written in several ways.",
            len(alike),
            examples=tuple(" / ".join(names[group].tolist()) for group in alike[:3]),
            remedy="write each in one way",
            severity=SERIOUS,
        )


def check_sides(answers: Rankings) -> Iterator[Finding]:
    """Find annotators who give one answer to every comparison."""
    pairs = answers.pairs()
    if not (pairs.outcome == 1).any():
        return  # listed by rank, and not as they were presented
    annotator = answers.annotator[pairs.answer]
    counts = np.zeros((answers.n_annotators, 3))
    np.add.at(counts, (annotator, pairs.outcome), 1)
    always = np.flatnonzero((counts.max(axis=1) == counts.sum(axis=1)) & (counts.sum(axis=1) >= 10))
    if len(always):
        yield Finding(
            "always-the-same",
            f"{many(len(always), 'annotator')} {verb(len(always), 'give')} one answer to every "
            "comparison: left, right or a tie.",
            len(always),
            examples=first_quoted(answers.annotators[always]),
            remedy="bradley-terry gives them little weight",
        )


def check_copied(answers: Answers) -> Iterator[Finding]:
    """Find pairs of annotators with equal answers to all common items."""
    size = answers.labels_per_item.astype(np.int64)
    if not 0 < (size * (size - 1) // 2).sum() <= _PAIRS:
        return
    first, second = answers.within_item_pairs()
    compared = ~(answers.empty[first] & answers.empty[second])
    first, second = first[compared], second[compared]
    distance = answers.distance(first, second)
    if not len(distance) or distance.mean() < _APART:
        return
    annotators = np.sort(np.stack([answers.annotator[first], answers.annotator[second]]), axis=0)
    key = annotators[0].astype(np.int64) * answers.n_annotators + annotators[1]
    pair, row = np.unique(key, return_inverse=True)
    equal = distance == 0
    common, n_equal = np.bincount(row), np.bincount(row, equal)
    # How probable equal answers are: as often as those of the other pairs on the item are equal.
    item = answers.item[first]
    size, alike = np.bincount(item)[item], np.bincount(item, equal)[item]
    likely = (alike - equal + _PSEUDO * equal.mean()) / (size - 1 + _PSEUDO)
    log_probability = np.bincount(row, np.log(np.maximum(likely, 1e-12)))
    certain = log_probability < np.log(_ERROR / len(pair))
    copied = pair[(common >= _LEAST) & (n_equal == common) & certain]
    if len(copied):
        names = answers.annotators
        examples = [f"{names[k // len(names)]} and {names[k % len(names)]}" for k in copied[:3]]
        yield Finding(
            "copies",
            f"{many(len(copied), 'pair')} of annotators {verb(len(copied), 'give')} equal answers "
            "to all common items.",
            len(copied),
            examples=tuple(examples),
            remedy="find out whether one copies the other",
        )


def check_numbers(annotations: Numbers) -> Iterator[Finding]:
    """Find outliers, and annotators who always give the same number."""
    if len(annotations) == 0:
        return
    item = annotations.item
    median = median_by(item, annotations.value, annotations.n_items)
    gap = np.abs(annotations.value - median[item])
    judged = annotations.labels_per_item[item] >= 3
    scale = 1.4826 * float(np.median(gap[judged])) if judged.any() else 0.0
    if scale == 0 and judged.any():  # more than half are equal
        scale = 1.2533 * float(gap[judged].mean())
    far = np.flatnonzero(judged & (gap > _FAR * scale)) if scale else np.empty(0, np.int64)
    if len(far):
        far = far[np.argsort(-gap[far], kind="stable")]
        yield Finding(
            "outliers",
            f"{many(len(far), 'answer')} ({len(far) / len(annotations):.1%}) "
            f"{verb(len(far), 'are')} more than {_FAR:g} usual distances ({scale:.3g}) from the "
            "median of their item.",
            len(far),
            examples=tuple(_example(annotations, median, row) for row in far[:3].tolist()),
            remedy="typing errors or another scale; median, catd and gaussian are robust",
        )
    yield from _constant(annotations)


def _constant(annotations: Numbers) -> Iterator[Finding]:
    low = np.full(annotations.n_annotators, np.inf)
    high = np.full(annotations.n_annotators, -np.inf)
    np.minimum.at(low, annotations.annotator, annotations.value)
    np.maximum.at(high, annotations.annotator, annotations.value)
    still = np.flatnonzero((low == high) & (annotations.labels_per_annotator >= _ENOUGH))
    if len(still) and annotations.value.min() < annotations.value.max():
        yield Finding(
            "constant-numbers",
            f"{many(len(still), 'annotator')} always {verb(len(still), 'give')} the same number.",
            len(still),
            examples=tuple(
                f"{quoted(annotations.annotators[code])}: "
                f"{annotations.labels_per_annotator[code]} × {low[code]:g}"
                for code in still[:3].tolist()
            ),
            remedy="review their work",
        )


def _example(annotations: Numbers, median: Floats, row: int) -> str:
    item, annotator = annotations.item[row], annotations.annotator[row]
    return (
        f"{quoted(annotations.annotators[annotator])} on {quoted(annotations.items[item])}: "
        f"{annotations.value[row]:g}, median {median[item]:g}"
    )
