"""LeWiDi (learning with disagreements): one JSON object, item → text, annotators, annotations.

In 2023 annotators and annotations are lists in one text each, `"Ann1,Ann2"` and `"0,1"`; since
2025 annotations are an object, annotator → label, in which `"a,b"` are two labels at once.
Integers of more than two kinds are classes in order. The hard label is a vote, not gold. Test
items without annotations are counted and left out; the file of demographics is not read.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from ...base.names import code, text
from ..collecting import Collected, describe
from ..format import Export, Format, Head
from ..json_records import entries
from ..sources import Source

_SIGNS = ("soft_label", "number of annotations", "number of annotators", "annotation task")

Scalar = str | int | float | bool


class Item(Struct, gc=False):
    """An item and its annotations."""

    text: Any = None
    annotators: str | list[Any] | None = None
    annotations: str | list[Any] | dict[str, Any] | None = None
    soft_label: Any = None
    split: Scalar | None = None


def recognises(head: Head) -> bool:
    """Return whether an object holds items with annotators, annotations and soft labels."""
    return head.shape == "object" and bool(head.first) and all(map(_is_item, head.first))


def _is_item(value: Any) -> bool:
    if not isinstance(value, dict) or "annotations" not in value or "annotators" not in value:
        return False
    return any(name in value for name in _SIGNS)


def read(source: Source) -> Export:
    """Return the annotations of a file."""
    collection = Collected()
    answers = collection["label"]
    for name, entry in entries(source, Item):
        item = collection.items.name(name, describe(entry.text))
        if item is None:
            raise source.fail("an item without a name")
        pairs = _pairs(entry, item, source)
        for annotator, options in pairs:
            if not (annotator and options):
                reason = "without a label" if annotator else "without an annotator"
                collection.leave_out(reason, item, annotator)
                continue
            split = None if entry.split is None else text(entry.split)
            answers.add(item, annotator, options, split=split)
        if isinstance(entry.soft_label, dict):
            answers.classes.update(dict.fromkeys(entry.soft_label))
    if not answers.several:
        labels = {label for options in answers.known for label in options}
        offered = [name for name in answers.classes if not labels or labels <= {*answers.classes}]
        if len(labels) > 2 and all(map(_is_integer, labels)):
            answers.kind = "ordinal"
            offered = [name for name in {*labels, *answers.classes} if _is_integer(name)]
        answers.classes = dict.fromkeys(code(offered)[1].tolist())
    return collection.export()


def _pairs(entry: Item, item: str, source: Source) -> list[tuple[str, list[str]]]:
    """Return pairs of annotator and labels; either may be empty."""
    annotations = entry.annotations
    if isinstance(annotations, dict):
        return [(annotator, _split(labels)) for annotator, labels in annotations.items()]
    labels, annotators = _split(annotations, gaps=True), _split(entry.annotators, gaps=True)
    if not any(labels) and len(labels) != len(annotators):
        return [(annotator, []) for annotator in annotators]
    if len(labels) != len(annotators):
        raise source.fail(f"item {item!r}: {len(labels)} labels but {len(annotators)} annotators")
    pairs = zip(annotators, labels, strict=True)
    return [
        (annotator, [label] if label else []) for annotator, label in pairs if annotator or label
    ]


def _split(value: Any, *, gaps: bool = False) -> list[str]:
    """Return the parts of a list, or of a text with commas; empty ones only with `gaps`.

    Spaces beside a comma belong to it.
    """
    if value is None or isinstance(value, dict):
        return []
    parts = value if isinstance(value, list) else map(str.strip, text(value).split(","))
    names = ["" if part is None else text(part) for part in parts]
    return names if gaps else [name for name in names if name]


def _is_integer(name: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", name) is not None


FORMAT = Format("lewidi", recognises=recognises, read=read, kinds=("sets",))
