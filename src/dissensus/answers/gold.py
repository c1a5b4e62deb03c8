"""Known answers, in the forms in which methods take them: codes of classes, numbers, answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.arrays import Floats, Integers
from ..base.names import text
from ..errors import DataError
from .annotations import Annotations
from .base import Answers, Relation
from .numbers import Numbers


def gold_codes(annotations: Annotations, gold: Mapping[Any, Any] | None) -> Integers | None:
    """Return the known class of every item, -1 where it is unknown; `None` without gold."""
    if not gold:
        return None
    classes = {name: code for code, name in enumerate(annotations.classes.tolist())}
    codes = np.full(annotations.n_items, -1, dtype=np.int64)
    for code, item, label in _known(annotations, gold):
        name = text(label)
        if name not in classes:
            raise DataError(
                f"gold says {name!r} for item {item!r}, which is not among the classes "
                f"{', '.join(classes)}; declare it with the annotations"
            )
        codes[code] = classes[name]
    return codes


def gold_values(numbers: Numbers, gold: Mapping[Any, Any] | None) -> Floats:
    """Return the known value of every item, NaN where it is unknown."""
    values = np.full(numbers.n_items, np.nan)
    for code, item, value in _known(numbers, gold) if gold else ():
        values[code] = as_number(value)
        if not math.isfinite(values[code]):
            raise DataError(f"gold says {value!r} for item {item!r}, which is not a number")
    return values


def as_number(value: Any) -> float:
    """Return a value as a number, NaN if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def as_gold(answers: Answers, gold: Answers | Mapping[Any, Any] | None) -> Answers | None:
    """Return known answers with the items of the answers; refuse those of another kind."""
    if gold is None or len(gold) == 0:
        return None
    if isinstance(gold, Mapping):
        who = ["gold"] * len(gold)
        gold = type(answers).from_values(list(gold), who, list(gold.values()))
    if gold.kind != answers.kind:
        raise DataError(f"the answers are {answers.kind}, but gold is {gold.kind}")
    known = answers.align(gold)
    if len(known) == 0:
        raise DataError("gold is given, but for none of the annotated items")
    if known.labels_per_item.max() > 1:
        twice = answers.items[known.labels_per_item.argmax()]
        raise DataError(f"gold has several answers to item {twice!r}; keep one of them")
    return known


def _known(answers: Relation, gold: Mapping[Any, Any]) -> list[tuple[int, str, Any]]:
    """Return code, name and gold of every annotated item with gold; other gold is ignored."""
    by_name = {text(item): value for item, value in gold.items()}
    rows = enumerate(answers.items.tolist())
    known = [(code, item, by_name[item]) for code, item in rows if item in by_name]
    if not known:
        raise DataError("gold is given, but for none of the annotated items")
    return known
