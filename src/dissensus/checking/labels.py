"""Repeated labels, and classes, items and annotators that are spelled in several ways."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator

import numpy as np

from .._names import NUMBER, Names
from .._relation import Integers
from ..annotations import Annotations
from ._finding import KNOWING, SERIOUS, CheckContext, Finding, many, quoted, verb

_MANY = 0.02  # share of pairs above which several labels seem intended
_RARE = 5  # labels below which a class is rare
_MISSING = {"", "?", "-", "--", "n/a", "na", "nan", "none", "null", "missing", "skip", "skipped"}
_EDGES = " \t\n\r.,;:!?\"'`´‘’“”«»()[]…\u200b\ufeff"


def check_repeats(context: CheckContext) -> Iterator[Finding]:
    """Find repeated labels of one annotator on one item, equal or different."""
    annotations, same = context.annotations, context.same_pair
    again = same.copy()
    again[1:] &= context.answer[1:] == context.answer[:-1]
    word = "label" if isinstance(annotations, Annotations) else "answer"
    if again.any():
        rows = np.flatnonzero(again)
        firsts = np.flatnonzero(again & ~np.roll(again, 1))
        yield Finding(
            "repeats",
            f"{many(len(rows), word)} {verb(len(rows), 'repeat')} one that the same annotator gave "
            "to the same item.",
            len(rows),
            tuple(_pair(context, row) for row in firsts[:3]),
            "leave the repeats out, or every one of them counts as a vote",
        )
    pair = np.cumsum(~same) - 1
    differ = np.unique(pair[same & ~again])
    if len(differ):
        share = len(differ) / (pair[-1] + 1)
        starts = np.flatnonzero(~same)
        # Items that are asked again get the same label more often than another.
        meant = (
            isinstance(annotations, Annotations)
            and share > _MANY
            and again.sum() < len(differ)
            and not context.free_text
        )
        yield Finding(
            "contradictions",
            f"{many(len(differ), 'time')} ({share:.1%}) an annotator gave different {word}s to "
            "one item.",
            len(differ),
            tuple(_pair(context, starts[position]) for position in differ[:3]),
            "if items were asked again, keep the last; if several labels were allowed, "
            "treat each class as a question",
            severity=SERIOUS if meant else KNOWING,
        )


def _pair(context: CheckContext, row: int) -> str:
    """Return all answers of the annotator on the item of a row."""
    annotations, stop = context.annotations, row + 1
    while stop < len(annotations) and context.same_pair[stop]:
        stop += 1
    while context.same_pair[row]:
        row -= 1
    given = context.answer[row:stop].tolist()
    if isinstance(annotations, Annotations):
        given = [quoted(annotations.classes[code]) for code in given]
    annotator, item = annotations.annotator[row], context.item[row]
    answers = ", ".join(str(one) for one in given[:4])
    return f"{context.name('annotators', annotator)} on {context.name('items', item)}: {answers}"


def check_spellings(context: CheckContext) -> Iterator[Finding]:
    """Find classes, annotators and items that differ only in spelling."""
    annotations = context.annotations
    if isinstance(annotations, Annotations) and not context.free_text:
        counts = np.bincount(annotations.label, minlength=annotations.n_classes)
        alike = like_one(annotations.classes, _loosely)
        if alike:
            yield Finding(
                "spellings",
                f"{many(len(alike), 'class')} {verb(len(alike), 'are')} written in more than "
                "one way.",
                len(alike),
                tuple(_spelled(annotations.classes, group, counts) for group in alike[:3]),
                "write them alike before anything is counted",
                severity=SERIOUS,
            )
    for code, names, counts, key in (
        ("annotator-spellings", annotations.annotators, annotations.labels_per_annotator, _loosely),
        ("item-spellings", annotations.items, annotations.labels_per_item, _strictly),
    ):
        alike = like_one(names, key)
        if alike:
            word = code.partition("-")[0]
            yield Finding(
                code,
                f"{many(len(alike), word)} {verb(len(alike), 'seem')} to be written in more "
                "than one way.",
                len(alike),
                tuple(_spelled(names, group, counts) for group in alike[:3]),
                "write them alike if they are the same",
            )


def like_one(names: Names, key: Callable[[str], object]) -> list[list[int]]:
    """Return groups of names with the same key, by position."""
    groups: dict[object, list[int]] = {}
    for position, name in enumerate(names.tolist()):
        groups.setdefault(key(name), []).append(position)
    return [group for group in groups.values() if len(group) > 1]


def _loosely(name: str) -> object:
    """Return a name without case, spaces, punctuation at the ends, and forms of letters.

    >>> _loosely("Ｙes. ") == _loosely("yes"), _loosely("1.0") == _loosely("1")
    (True, True)
    >>> _loosely("-1") == _loosely("1")
    False
    """
    if re.match(NUMBER, name.strip()) and math.isfinite(float(name)):
        return float(name)
    plain = unicodedata.normalize("NFKC", name).casefold().strip(_EDGES)
    return re.sub(r"[\s_\-‐–]+", " ", plain) or name


def _strictly(name: str) -> object:
    return unicodedata.normalize("NFC", name).strip() or name


def check_classes(context: CheckContext) -> Iterator[Finding]:
    """Find free text, unused classes and rare classes."""
    annotations = context.annotations
    if not isinstance(annotations, Annotations) or len(annotations) == 0:
        return
    counts = np.bincount(annotations.label, minlength=annotations.n_classes)
    if context.free_text:
        used = int((counts > 0).sum())
        often = np.argsort(-counts, kind="stable")[:3]
        yield Finding(
            "free-text",
            f"{used} different labels among {len(annotations)}: free text rather than classes.",
            used,
            tuple(f"{quoted(annotations.classes[code])} ({counts[code]})" for code in often),
            "sort the answers into classes first; aggregation counts equal labels",
            severity=SERIOUS,
        )
        return
    yield from _odd_classes(annotations, counts)
    unused = np.flatnonzero(counts == 0)
    if len(unused):
        yield Finding(
            "unused-classes",
            f"{many(len(unused), 'class')} {verb(len(unused), 'are')} declared but never used.",
            len(unused),
            tuple(quoted(annotations.classes[code]) for code in unused[:3]),
            "leave them out of --classes unless they may still be used",
        )


def _odd_classes(annotations: Annotations, counts: Integers) -> Iterator[Finding]:
    used = np.flatnonzero(counts)
    if len(used) == 1 and len(annotations) > 1:
        yield Finding(
            "one-class",
            f"Every label is {quoted(annotations.classes[used[0]])}: there is nothing to decide.",
            len(annotations),
            remedy="check that the right column was read",
            severity=SERIOUS,
        )
    odd = [code for code in used.tolist() if _looks_missing(annotations.classes, code)]
    if odd:
        total = int(counts[odd].sum())
        yield Finding(
            "missing-like",
            f"{many(total, 'label')} {verb(total, 'look')} like a missing one.",
            total,
            tuple(f"{annotations.classes[code]!r} ({counts[code]})" for code in odd[:3]),
            "leave these rows out unless it is a class",
        )
    rare = [code for code in used.tolist() if counts[code] < _RARE]
    if rare and len(annotations) >= 20 * _RARE:
        yield Finding(
            "rare-classes",
            f"{many(len(rare), 'class')} {verb(len(rare), 'have')} fewer than {_RARE} labels.",
            len(rare),
            tuple(f"{quoted(annotations.classes[code])} ({counts[code]})" for code in rare[:3]),
            "typing errors, or too few to learn from",
        )


def _looks_missing(classes: Names, code: int) -> bool:
    """Return whether a class means a missing label, or is the only negative number."""
    name = classes[code]
    if name.strip().casefold() in _MISSING:
        return True
    others = [one for position, one in enumerate(classes.tolist()) if position != code]
    return name == "-1" and len(others) > 1 and all(one.isdigit() for one in others)


def _spelled(names: Names, group: list[int], counts: Integers) -> str:
    return ", ".join(f"{names[position]!r} ({counts[position]})" for position in group[:4])
