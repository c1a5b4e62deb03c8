"""Answers as JSON records, one object per answer: our interchange.

    {"item": "s1", "annotator": "ann", "spans": [{"start": 0, "end": 2, "label": "PER"}]}

Likewise `boxes`, `points`, `mask`, `labels`, `ranking` and `text`; an empty list is an empty
answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..answers import KINDS, Answers, kind_class
from ..errors import DataError
from .columns import NEEDED, plain_name
from .format import Head
from .json_records import load_records
from .sources import Source

_SHAPES: dict[str, tuple[type[Any], ...]] = {"texts": (str,), "masks": (dict,)}
_ROW = re.compile(r"^row (\d+): ")


def kind_of_records(head: Head, who: str | None = None) -> str | None:
    """Return the kind of answers that records hold; nothing for other records.

    With `who`, they need no annotators.
    """
    if head.shape != "records" or not head.records:
        return None
    first = head.records[0]
    roles = [_key(first, role) for role in ("item", "annotator")[: 1 if who else 2]]
    if None in roles or any(plain_name(key) in NEEDED["label"] for key in first):
        return None
    kinds = [kind for kind in KINDS if kind_class(kind).value_key in first]
    if len(kinds) != 1:
        return None
    key, shape = kind_class(kinds[0]).value_key, _SHAPES.get(kinds[0], (list,))
    return kinds[0] if isinstance(first[key], shape) else None


def answers_from_records(source: Source, kind: str, who: str | None = None) -> Answers:
    """Return the answers of records of a kind; with `who`, all are of one annotator."""
    cls, shape = kind_class(kind), _SHAPES.get(kind, (list,))
    records = load_records(source)
    rows = []
    for number, given_record in enumerate(records, 1):
        record = given_record if who is None else {**given_record, "annotator": who}
        keys = [_key(record, role) for role in ("item", "annotator")]
        if None in keys or cls.value_key not in record:
            needed = ("item", "annotator", cls.value_key)
            lacks = [n for n, key in zip(needed, (*keys, cls.value_key), strict=True)
                     if key not in record]  # fmt: skip
            raise source.fail(f"line {number}: no {lacks[0]}; an answer has {', '.join(needed)}")
        value = record[cls.value_key]
        if not isinstance(value, shape) or not _is_plain(kind, value):
            what = {"texts": "a text", "masks": "an object with size and counts"}
            raise source.fail(
                f"line {number}: {cls.value_key} is {what.get(kind, 'a list')}, here {value!r:.40}"
            )
        item, annotator = (record[str(key)] for key in keys)
        for name, given in (("item", item), ("annotator", annotator)):
            if given is None or given == "" or isinstance(given, (list, dict)):
                raise source.fail(f"line {number}: {name} is {given!r:.40}, not a name")
        rows.append(record | {"item": item, "annotator": annotator})
    try:
        return cls.from_rows(rows)
    except DataError as problem:
        raise source.fail(_ROW.sub(r"line \1: ", str(problem))) from None


def _key(record: Mapping[str, Any], role: str) -> str | None:
    return next((key for key in record if plain_name(key) in NEEDED[role]), None)


def _is_plain(kind: str, value: Any) -> bool:
    """Return whether the entries of a list are of the right shape."""
    if kind == "sets":
        return not any(isinstance(one, (list, dict)) or one is None for one in value)
    return True
