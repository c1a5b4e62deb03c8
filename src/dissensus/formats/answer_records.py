"""Answers as JSON records, one object per answer: our interchange.

    {"item": "s1", "annotator": "ann", "spans": [{"start": 0, "end": 2, "label": "PER"}]}

Likewise `boxes`, `points`, `mask`, `labels`, `ranking` and `text`; an empty list is an empty
answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..answers import KINDS, Answers, kind_class
from ..errors import DataError
from .columns import NEEDED, plain_name
from .format import Head
from .json_records import load_records
from .sources import Source

_SHAPES: dict[str, tuple[type[Any], ...]] = {"texts": (str,), "masks": (dict,)}
_EXPECTED = {"texts": "a text", "masks": "an object with size and counts"}
_ROW = re.compile(r"^row (\d+): ")


def kind_of_records(head: Head, annotator: str | None = None) -> str | None:
    """Return the kind of answers that records hold; nothing for other records.

    With an `annotator` of all, they need none.
    """
    if head.shape != "records" or not head.records:
        return None
    record = head.records[0]
    roles = [_key(record, role) for role in ("item", "annotator")[: 1 if annotator else 2]]
    if None in roles or any(plain_name(key) in NEEDED["label"] for key in record):
        return None
    kinds = [kind for kind in KINDS if kind_class(kind).value_key in record]
    if len(kinds) != 1:
        return None
    key, shape = kind_class(kinds[0]).value_key, _SHAPES.get(kinds[0], (list,))
    return kinds[0] if isinstance(record[key], shape) else None


def answers_from_records(source: Source, kind: str, annotator: str | None = None) -> Answers:
    """Return the answers of records of a kind; with `annotator`, all are that one's."""
    cls, shape = kind_class(kind), _SHAPES.get(kind, (list,))
    records = load_records(source)
    rows = []
    for number, fields in enumerate(records, 1):
        record = fields if annotator is None else {**fields, "annotator": annotator}
        keys = {role: _key(record, role) for role in ("item", "annotator")}
        if None in keys.values() or cls.value_key not in record:
            needed = {**keys, cls.value_key: cls.value_key}
            lacks = next(name for name, key in needed.items() if key not in record)
            raise source.fail(f"line {number}: no {lacks}; an answer has {', '.join(needed)}")
        value = record[cls.value_key]
        if not isinstance(value, shape) or not _is_plain(kind, value):
            expected = _EXPECTED.get(kind, "a list")
            raise source.fail(f"line {number}: {cls.value_key} is {expected}, here {value!r:.40}")
        names = {role: record[str(key)] for role, key in keys.items()}
        for role, name in names.items():
            if name is None or name == "" or isinstance(name, (list, dict)):
                raise source.fail(f"line {number}: {role} is {name!r:.40}, not a name")
        rows.append(record | names)
    try:
        return cls.from_rows(rows)
    except DataError as problem:
        message = problem.message
        problem.message = replace(message, what=_ROW.sub(r"line \1: ", message.what))
        raise source.blame(problem) from None


def _key(record: Mapping[str, Any], role: str) -> str | None:
    return next((key for key in record if plain_name(key) in NEEDED[role]), None)


def _is_plain(kind: str, value: Any) -> bool:
    """Return whether the entries of a list are of the right shape."""
    if kind == "sets":
        return not any(isinstance(option, (list, dict)) or option is None for option in value)
    return True
