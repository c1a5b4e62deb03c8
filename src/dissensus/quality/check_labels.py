"""Repeated labels, and classes, items and annotators that are spelled in several ways."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..base.names import Names
from ..base.arrays import Array, Integers
from ..metrics.votes import repeats_previous
from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..answers.numbers import Numbers
from ..pages.wording import first_quoted, many, quoted, verb
from ..formats.spellings import classes_alike, items_alike
from ..pages.sections import KNOWING, SERIOUS, Finding
from .findings import is_free_text

_MANY = 0.02  # share of pairs above which several labels seem intended
_RARE = 5  # labels below which a class is rare
_MISSING = {"", "?", "-", "--", "n/a", "na", "nan", "none", "null", "missing", "skip", "skipped"}


def check_quotes(annotations: Relation) -> Iterator[Finding]:
    """Find lines of a file that look like rows, but are inside quotes."""
    from ..formats.line_faults import INSIDE  # where it is used: readers take time to import

    fields = {
        reason.removeprefix(INSIDE).strip(" ()"): count
        for reason, count in annotations.left_out.rows.items()
        if reason.startswith(INSIDE)
    }
    count = sum(fields.values())
    if count:
        yield Finding(
            "swallowed-rows",
            f"{many(count, 'row')} {verb(count, 'seem')} to be inside a quoted field, and "
            f"{verb(count, 'are')} not read.",
            count,
            tuple(fields),
            "close the quote in the first of the lines, or take it away",
            severity=SERIOUS,
        )


def check_repeats(annotations: Annotations | Numbers) -> Iterator[Finding]:
    """Find repeated labels of one annotator on one item, equal or different."""
    same = repeats_previous(annotations)
    classes = annotations.classes if isinstance(annotations, Annotations) else None
    answer: Array = annotations.label if isinstance(annotations, Annotations) else annotations.value
    word = "answer" if classes is None else "label"
    again = same.copy()
    again[1:] &= answer[1:] == answer[:-1]
    starts = np.flatnonzero(~same)
    pair = np.cumsum(~same) - 1

    def examples(pairs: Integers) -> tuple[str, ...]:
        """Return all answers of some pairs of annotator and item."""
        out = []
        for start in starts[pairs[:3]].tolist():
            given = answer[start : start + int((pair == pair[start]).sum())][:4]
            names = given if classes is None else classes[given]
            written = ", ".join(quoted(one) for one in names.tolist())
            annotator = quoted(annotations.annotators[annotations.annotator[start]])
            item = quoted(annotations.items[annotations.item[start]])
            out.append(f"{annotator} on {item}: {written}")
        return tuple(out)

    if again.any():
        count = int(again.sum())
        firsts = np.flatnonzero(again & ~np.roll(again, 1))
        yield Finding(
            "repeats",
            f"{many(count, word)} {verb(count, 'repeat')} one that the same annotator gave "
            "to the same item.",
            count,
            examples(pair[firsts]),
            "leave the repeats out, or every one of them counts as a vote",
        )
    differ = np.unique(pair[same & ~again])
    if len(differ):
        share = len(differ) / len(starts)
        # Items that are asked again get the same label more often than another.
        meant = classes is not None and share > _MANY and again.sum() < len(differ)
        yield Finding(
            "contradictions",
            f"{many(len(differ), 'time')} ({share:.1%}) an annotator gave different {word}s to "
            "one item.",
            len(differ),
            examples(differ),
            "if items were asked again, keep the last; if several labels were allowed, "
            "treat each class as a question",
            severity=SERIOUS if meant and not is_free_text(annotations) else KNOWING,
        )


def check_classes(annotations: Annotations) -> Iterator[Finding]:
    """Find free text, and classes that are unused, rare, missing-like or spelled alike."""
    classes = annotations.classes
    counts = np.bincount(annotations.label, minlength=len(classes))
    used = np.flatnonzero(counts)

    def examples(codes: Integers) -> tuple[str, ...]:
        return tuple(f"{quoted(classes[code])} ({counts[code]})" for code in codes[:3])

    if is_free_text(annotations):
        if len(used):
            yield Finding(
                "free-text",
                f"{len(used)} different labels among {len(annotations)}: free text rather than "
                "classes.",
                len(used),
                examples(np.argsort(-counts, kind="stable")),
                "sort the answers into classes first; aggregation counts equal labels",
                severity=SERIOUS,
            )
        return
    if len(used) == 1 and len(annotations) > 1:
        yield Finding(
            "one-class",
            f"Every label is {quoted(classes[used[0]])}: there is nothing to decide.",
            len(annotations),
            remedy="check that the right column was read",
            severity=SERIOUS,
        )
    positive = [name.isdigit() for name in classes.tolist()]
    missing = set(_MISSING)
    if len(classes) > 2 and sum(positive) == len(classes) - 1:
        missing.add("-1")  # the only negative number
    odd = [code for code in used.tolist() if classes[code].strip().casefold() in missing]
    if odd:
        total = int(counts[odd].sum())
        yield Finding(
            "missing-like",
            f"{many(total, 'label')} {verb(total, 'look')} like a missing one.",
            total,
            tuple(f"{classes[code]!r} ({counts[code]})" for code in odd[:3]),
            "leave these rows out unless it is a class",
        )
    rare = used[counts[used] < _RARE]
    if len(rare) and len(annotations) >= 20 * _RARE:
        yield Finding(
            "rare-classes",
            f"{many(len(rare), 'class')} {verb(len(rare), 'have')} fewer than {_RARE} labels.",
            len(rare),
            examples(rare),
            "typing errors, or too few to learn from",
        )
    unused = np.flatnonzero(counts == 0)
    if len(unused) and len(used):
        yield Finding(
            "unused-classes",
            f"{many(len(unused), 'class')} {verb(len(unused), 'are')} declared but never used.",
            len(unused),
            first_quoted(classes[unused[:3]]),
            "leave them out of --classes unless they may still be used",
        )
    alike = classes_alike(classes)
    if alike:
        yield Finding(
            "spellings",
            f"{many(len(alike), 'class')} {verb(len(alike), 'are')} written in more than one way.",
            len(alike),
            tuple(_spelled(classes, group, counts) for group in alike[:3]),
            "write them alike before anything is counted",
            severity=SERIOUS,
        )


def check_names(annotations: Relation) -> Iterator[Finding]:
    """Find annotators and items that differ only in spelling."""
    people, items = annotations.annotators, annotations.items
    for word, names, counts, alike in (
        ("annotator", people, annotations.labels_per_annotator, classes_alike(people)),
        ("item", items, annotations.labels_per_item, items_alike(items)),
    ):
        if alike:
            yield Finding(
                f"{word}-spellings",
                f"{many(len(alike), word)} {verb(len(alike), 'seem')} to be written in more "
                "than one way.",
                len(alike),
                tuple(_spelled(names, group, counts) for group in alike[:3]),
                "write them alike if they are the same",
            )


def _spelled(names: Names, group: list[int], counts: Integers) -> str:
    return ", ".join(f"{names[position]!r} ({counts[position]})" for position in group[:4])
