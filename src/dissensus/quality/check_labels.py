"""What is wrong with classes, and with gold about them.

Labels that an annotator repeats or contradicts, classes, items and annotators spelled in several
ways, labels of people and models in one file, and gold that is about other items, has other classes
or contradicts everybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from ..answers.annotations import Annotations
from ..answers.base import Relation
from ..base.arrays import Array, Integers
from ..base.names import Names, as_names, indices_of
from ..errors import Note
from ..formats.spellings import are_free_texts, classes_alike, items_alike
from ..metrics.statistics import repeats_previous
from ..pages.sections import KNOWING, SERIOUS, Finding
from ..pages.wording import first_quoted, many, quoted, verb
from .findings import is_free_text

Mask = npt.NDArray[np.bool_]

_MANY = 0.02  # share of pairs above which several labels seem intended
_RARE = 5  # labels below which a class is rare
_MISSING = {"", "?", "-", "--", "n/a", "na", "nan", "none", "null", "missing", "skip", "skipped"}
_AGAINST = 0.2  # share of gold items against all labels that is serious
_ENOUGH = 3  # labels on an item to compare with gold
_LABELS = 20  # labels on a gold class to compare with it


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
            examples=tuple(fields),
            remedy="close the quote in the first of the lines, or take it away",
            severity=SERIOUS,
        )


def check_repeats(
    annotations: Relation, answer: Array, classes: Names | None = None
) -> Iterator[Finding]:
    """Find repeated answers of one annotator to one item, equal or different; numbers or codes."""
    repeated = repeats_previous(annotations)
    word = "answer" if classes is None else "label"
    equal = repeated.copy()
    equal[1:] &= answer[1:] == answer[:-1]
    starts = np.flatnonzero(~repeated)
    pair = np.cumsum(~repeated) - 1

    def examples(pairs: Integers) -> tuple[str, ...]:
        """Return all answers of some pairs of annotator and item."""
        out = []
        for start in starts[pairs[:3]].tolist():
            answers = answer[start : start + int((pair == pair[start]).sum())][:4]
            names = answers if classes is None else classes[answers]
            written = ", ".join(quoted(value) for value in names.tolist())
            annotator = quoted(annotations.annotators[annotations.annotator[start]])
            item = quoted(annotations.items[annotations.item[start]])
            out.append(f"{annotator} on {item}: {written}")
        return tuple(out)

    if equal.any():
        count = int(equal.sum())
        firsts = np.flatnonzero(equal & ~np.roll(equal, 1))
        yield Finding(
            "repeats",
            f"{many(count, word)} {verb(count, 'repeat')} one that the same annotator gave "
            "to the same item.",
            count,
            examples=examples(pair[firsts]),
            remedy="leave the repeats out, or every one of them counts as a vote",
        )
    differ = np.unique(pair[repeated & ~equal])
    if len(differ):
        share = len(differ) / len(starts)
        # Items that are asked again get the same label more often than another.
        meant = share > _MANY and equal.sum() < len(differ)
        meant &= classes is not None and not are_free_texts(len(classes), len(annotations))
        yield Finding(
            "contradictions",
            f"{many(len(differ), 'time')} ({share:.1%}) an annotator gave different {word}s to "
            "one item.",
            len(differ),
            examples=examples(differ),
            remedy="if items were asked again, keep the last; if several labels were allowed, "
            "treat each class as a question",
            severity=SERIOUS if meant else KNOWING,
        )


def check_classes(annotations: Annotations) -> Iterator[Finding]:
    """Find free text, and classes that are unused, rare, missing-like or spelled alike."""
    classes = annotations.classes
    counts = np.bincount(annotations.label, minlength=len(classes))
    used_classes = np.flatnonzero(counts)

    def examples(codes: Integers) -> tuple[str, ...]:
        return tuple(f"{quoted(classes[code])} ({counts[code]})" for code in codes[:3])

    if is_free_text(annotations):
        if len(used_classes):
            yield Finding(
                "free-text",
                f"{len(used_classes)} different labels among {len(annotations)}: free text rather "
                "than classes.",
                len(used_classes),
                examples=examples(np.argsort(-counts, kind="stable")),
                remedy="sort the answers into classes first; aggregation counts equal labels",
                severity=SERIOUS,
            )
        return
    if len(used_classes) == 1 and len(annotations) > 1:
        yield Finding(
            "one-class",
            f"Every label is {quoted(classes[used_classes[0]])}: there is nothing to decide.",
            len(annotations),
            remedy="check that the right column was read",
            severity=SERIOUS,
        )
    positive = [name.isdigit() for name in classes.tolist()]
    missing = set(_MISSING)
    if len(classes) > 2 and sum(positive) == len(classes) - 1:
        missing.add("-1")  # the only negative number
    odd = [code for code in used_classes.tolist() if classes[code].strip().casefold() in missing]
    if odd:
        total = int(counts[odd].sum())
        yield Finding(
            "missing-like",
            f"{many(total, 'label')} {verb(total, 'look')} like a missing one.",
            total,
            examples=tuple(f"{classes[code]!r} ({counts[code]})" for code in odd[:3]),
            remedy="leave these rows out unless it is a class",
        )
    rare = used_classes[counts[used_classes] < _RARE]
    if len(rare) and len(annotations) >= 20 * _RARE:
        yield Finding(
            "rare-classes",
            f"{many(len(rare), 'class')} {verb(len(rare), 'have')} fewer than {_RARE} labels.",
            len(rare),
            examples=examples(rare),
            remedy="typing errors, or too few to learn from",
        )
    unused = np.flatnonzero(counts == 0)
    if len(unused) and len(used_classes):
        yield Finding(
            "unused-classes",
            f"{many(len(unused), 'class')} {verb(len(unused), 'are')} declared but never used.",
            len(unused),
            examples=first_quoted(classes[unused[:3]]),
            remedy=Note(
                "", remedy="leave them out of {} unless they may still be used", classes=...
            ),
        )
    alike = classes_alike(classes)
    if alike:
        yield Finding(
            "spellings",
            f"{many(len(alike), 'class')} {verb(len(alike), 'are')} written in more than one way.",
            len(alike),
            examples=tuple(_spelled(classes, group, counts) for group in alike[:3]),
            remedy="write them alike before anything is counted",
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
                examples=tuple(_spelled(names, group, counts) for group in alike[:3]),
                remedy="write them alike if they are the same",
            )


def _spelled(names: Names, group: list[int], counts: Integers) -> str:
    return ", ".join(f"{names[position]!r} ({counts[position]})" for position in group[:4])


def check_kinds(annotations: Annotations) -> Iterator[Finding]:
    """Find labels of people and models together, and classes that only one of them uses."""
    if not annotations.mixed_kinds:
        return
    model = annotations.is_kind("model")
    from_model = model[annotations.annotator]
    names = annotations.annotators[model]
    yield Finding(
        "kinds",
        f"Models gave {int(from_model.sum())} of {len(annotations)} labels: "
        f"{many(len(names), 'annotator')} {'is a model' if len(names) == 1 else 'are models'}.",
        len(names),
        examples=tuple(quoted(name) for name in names[:3].tolist()),
        remedy="`dissensus judge` compares them with people; to aggregate, -s judge-pool",
    )
    size = annotations.n_classes
    by_model = np.bincount(annotations.label[from_model], minlength=size)
    by_people = np.bincount(annotations.label[~from_model], minlength=size)
    one_sided = np.flatnonzero((by_model == 0) != (by_people == 0))
    if len(one_sided):
        yield Finding(
            "one-kind-classes",
            f"{many(len(one_sided), 'class')} {verb(len(one_sided), 'are')} used only by people or "
            "only by models, who can never agree there.",
            len(one_sided),
            examples=tuple(
                f"{quoted(annotations.classes[code])}: {by_people[code]} labels of people, "
                f"{by_model[code]} of models"
                for code in one_sided[:3].tolist()
            ),
            remedy="check that both were given the same classes, spelled alike",
        )


def _gold_items(annotations: Relation, gold: Mapping[str, str]) -> tuple[Integers, Mask]:
    """Return the code of every item with gold, or -1, and whether it has labels: (gold)."""
    item = indices_of(as_names(gold.keys()), annotations.items)
    labelled = item >= 0
    labelled[labelled] = annotations.labels_per_item[item[labelled]] > 0
    return item, labelled


def check_gold(annotations: Relation, gold: Mapping[str, str]) -> Iterator[Finding]:
    """Find gold about items without labels."""
    _, labelled = _gold_items(annotations, gold)
    if not labelled.all():
        names = [name for name, is_labelled in zip(gold, labelled, strict=True) if not is_labelled]
        none = not labelled.any()
        yield Finding(
            "gold-elsewhere",
            f"{'All' if none else len(names)} {'' if none else 'of '}{len(gold)} gold "
            "labels are about items without labels.",
            len(names),
            examples=first_quoted(names),
            remedy="check that items have the same names in both files" if none else "",
            severity=SERIOUS if none else KNOWING,
        )


def check_gold_classes(annotations: Annotations, gold: Mapping[str, str]) -> Iterator[Finding]:
    """Find gold of other classes, and gold that contradicts all labels."""
    item, labelled = _gold_items(annotations, gold)
    if not labelled.any() or is_free_text(annotations):
        return
    label = indices_of(as_names(gold.values()), annotations.classes)
    foreign = labelled & (label < 0)
    if foreign.any():
        values = list(gold.values())
        foreign_classes = dict.fromkeys(
            values[position] for position in np.flatnonzero(foreign).tolist()
        )
        yield Finding(
            "gold-classes",
            f"Gold has classes for {int(foreign.sum())} items that no label has.",
            int(foreign.sum()),
            examples=first_quoted(foreign_classes),
            remedy=Note(
                "",
                remedy="write classes the same way in both files, or declare them with {}",
                classes=...,
            ),
            severity=SERIOUS,
        )
    truth = np.full(annotations.n_items, -1, dtype=np.int64)
    usable = labelled & (label >= 0)
    truth[item[usable]] = label[usable]
    moved = list(_moved(annotations, truth))
    yield from moved
    if not any(finding.severity == SERIOUS for finding in moved):
        yield from _against(annotations, truth)


def _moved(annotations: Annotations, truth: Integers) -> Iterator[Finding]:
    """Find gold classes that are mostly labelled as another."""
    has_gold = truth[annotations.item] >= 0
    cell = truth[annotations.item][has_gold] * annotations.n_classes + annotations.label[has_gold]
    pair, count = np.unique(cell, return_counts=True)  # (gold class and label)
    true, label = np.divmod(pair, annotations.n_classes)
    total = np.bincount(true, count, minlength=annotations.n_classes)
    best = np.full(annotations.n_classes, -1, dtype=np.int64)
    order = np.argsort(count, kind="stable")
    best[true[order]] = label[order]  # the last one written is the most common
    judged = total >= _LABELS
    moved = np.flatnonzero(judged & (best != np.arange(annotations.n_classes)))
    if len(moved) == 0:
        return
    share = {(t, g): n / total[t] for t, g, n in zip(true, label, count, strict=True)}
    everywhere = len(moved) == judged.sum() > 1
    yield Finding(
        "gold-moved",
        f"{len(moved)} of {int(judged.sum())} gold classes are mostly labelled as another.",
        len(moved),
        examples=tuple(
            f"gold {quoted(annotations.classes[t])} is labelled "
            f"{quoted(annotations.classes[best[t]])} ({share[t, best[t]]:.0%})"
            for t in moved[:3].tolist()
        ),
        remedy="class names or numbers seem to be shifted in one of the files"
        if everywhere
        else "a hard class, or exchanged names",
        severity=SERIOUS if everywhere else KNOWING,
    )


def _against(annotations: Annotations, truth: Integers) -> Iterator[Finding]:
    """Find gold items with several labels, none of which is the gold one."""
    right = annotations.label == truth[annotations.item]
    hits = np.bincount(annotations.item[right], minlength=annotations.n_items)
    judged: Array = (truth >= 0) & (annotations.labels_per_item >= _ENOUGH)
    contradicted = np.flatnonzero(judged & (hits == 0))
    if len(contradicted) == 0:
        return
    share = len(contradicted) / judged.sum()
    yield Finding(
        "gold-alone",
        f"On {many(len(contradicted), 'item')} ({share:.1%} of those with gold and {_ENOUGH} "
        "labels) gold contradicts all labels.",
        len(contradicted),
        examples=tuple(_example(annotations, truth, item) for item in contradicted[:3].tolist()),
        remedy="review these items: gold is sometimes wrong",
        severity=SERIOUS if share > _AGAINST else KNOWING,
    )


def _example(annotations: Annotations, truth: Integers, item: int) -> str:
    labels = annotations.label[annotations.index[item] : annotations.index[item + 1]]
    count = np.bincount(labels)
    best = int(count.argmax())
    return (
        f"{quoted(annotations.items[item])}: gold {quoted(annotations.classes[truth[item]])}, "
        f"{count[best]} of {len(labels)} say {quoted(annotations.classes[best])}"
    )
