"""Counts of votes for every item, or shares with the number of votes, without annotators.

Such sets show how people split but not who gave which label. The votes on an item are read as
"vote 1", "vote 2", …; a method that models annotators learns nothing true from those. Counts are in
columns with a common prefix (`votes_cat`, `n0`), in columns whose sums are the same for all items,
or in an object `{class: count}`. Shares need the number of votes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ..base.names import text
from .columns import CARRIED, NEEDED, plain_name
from .format import Export, Format, Head, Question
from .sources import Source
from .tables import rows_of
from .tools.huggingface import ids_of, texts_in

_NOTE = "only counts of votes: annotators are unknown and named 'vote 1', 'vote 2', …"
Record = Mapping[str, Any]
Counter = Callable[[Record], dict[str, int]]

_MOST_VOTES = 10**8
_COUNTS = ("votes", "vote_counts", "label_counter", "label_counts", "counts", "annotation_counts")
_SHARES = ("soft_label", "soft_labels", "label_dist", "label_distribution")
_SIZES = (
    *("number_of_annotations", "number_of_annotators", "n_annotations", "n_annotators"),
    *("num_annotations", "num_annotators", "n_votes", "num_votes", "annotation_count"),
)
_PREFIX = re.compile(r"^(?:(?:n_)?votes?[_:. ]|counts?[_:. ]|n(?=\d))(.+)$", re.IGNORECASE)
_PEOPLE = {*NEEDED["annotator"], *(f"{name}s" for name in NEEDED["annotator"])}


def recognises(head: Head) -> bool:
    """Return whether records hold counts or shares of classes, and no annotators."""
    if head.shape not in ("records", "table") or not head.records:
        return False
    if any(plain_name(name) in (*_PEOPLE, *NEEDED["label"]) for name in head.names):
        return False
    return _counter(head.records) is not None


def read(source: Source) -> Export:
    """Return one row for each vote."""
    records = rows_of(source)
    counter = _counter(records) or _counter(records, explicit=True)
    if counter is None:
        raise source.fail("no counts of votes: columns votes_…, or an object {class: count}")
    tables = []
    for row, record in enumerate(records, 1):
        try:
            tables.append(counter(record))
        except ValueError as problem:
            raise source.fail(f"row {row}: {problem}") from None
    classes = list(dict.fromkeys(name for table in tables for name in table))
    rows = [[table.get(name, 0) for name in classes] for table in tables]
    counts = np.array(rows, dtype=np.int64).reshape(len(records), len(classes))
    if counts.sum() == 0:
        raise source.fail("no votes at all")
    if counts.sum() > _MOST_VOTES:
        raise source.fail(f"{counts.sum()} votes are more than can be read one by one")
    ids = ids_of(records)
    item, label, vote = _one_by_one(counts)
    answers = pl.DataFrame(
        {
            "item": ids.gather(item),
            "annotator": pl.Series("vote " + pl.Series(vote + 1).cast(pl.String)),
            "label": pl.Series(classes, dtype=pl.String).gather(label),
        }
    )
    if all(isinstance(record.get("split"), str) for record in records):
        split = pl.Series("split", [str(record["split"]) for record in records])
        answers = answers.with_columns(split.gather(item))
    question = Question(answers, classes=tuple(classes))
    return Export({"votes": question}, texts_in(records, ids), (_NOTE,))


def _one_by_one(counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
    """Return item, class and number within its item of every vote of a table (item, class)."""
    item, label = np.nonzero(counts)
    times = counts[item, label]
    item, label = np.repeat(item, times), np.repeat(label, times)
    start = np.searchsorted(item, item)  # where the votes on the same item begin
    return item, label, np.arange(len(item)) - start


def _counter(records: Sequence[Record], explicit: bool = False) -> Counter | None:
    """Return the function that reads counts by class from such records, if there is one."""
    keys = list(dict.fromkeys(key for record in records for key in record))
    for key in keys:
        if plain_name(key) in _COUNTS and all(_is_table(record.get(key)) for record in records):
            return partial(_from_object, key=key)
    for key in keys:
        if plain_name(key) in _SHARES:
            size = next((name for name in keys if plain_name(name) in _SIZES), None)
            return partial(_from_shares, key=key, size=size)
    prefixed = [key for key in keys if _PREFIX.match(key) and _counts_in(records, key)]
    if len(prefixed) > 1:
        return partial(_from_columns, keys=prefixed)
    roles = {*CARRIED["split"], *NEEDED["item"], "id", "index"}
    plain = [key for key in keys if plain_name(key) not in roles and _counts_in(records, key)]
    if len(plain) > 1 and (explicit or _sums_alike(records, plain, keys)):
        return partial(_from_columns, keys=plain)
    return None


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and len(value) > 0 and all(map(_is_count, value.values()))


def _is_count(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().isdecimal() and len(value) < 10
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 <= value < 10**9 and float(value).is_integer()


def _counts_in(records: Sequence[Record], key: str) -> bool:
    return all(_is_count(record.get(key)) for record in records)


def _sums_alike(records: Sequence[Record], columns: list[str], keys: list[str]) -> bool:
    """Return whether columns add up to about the same in all rows, and some row is near agreed."""
    other_keys = [key for key in keys if key not in columns]
    if len(records) < 3 or not any(
        plain_name(key) in (*NEEDED["item"], "id") for key in other_keys
    ):
        return False
    table = np.array([[int(float(record[key])) for key in columns] for record in records])
    sums = table.sum(axis=1)
    return bool(
        len(columns) > 2
        and table.max() > 2
        and sums.min() >= 0.6 * sums.max()
        and (table.max(axis=1) > 0.6 * sums).any()
    )


def _from_columns(record: Record, keys: Sequence[str]) -> dict[str, int]:
    matches = {key: _PREFIX.match(key) for key in keys}
    return {match[1] if match else key: _count(record, key) for key, match in matches.items()}


def _from_object(record: Record, key: str) -> dict[str, int]:
    table = record.get(key)
    if table is None:
        return {}
    if not _is_table(table):
        raise ValueError(f"{key} should be {{class: count}}")
    return {name: int(float(count)) for name, count in table.items()}


def _from_shares(record: Record, key: str, size: str | None) -> dict[str, int]:
    """Return counts from shares and the number of votes, which must fit each other."""
    if size is None:
        raise ValueError(
            f"{key} has shares but not of how many votes; add a column number_of_annotations"
        )
    shares = record.get(key)
    if isinstance(shares, list):
        shares = dict(enumerate(shares))
    if not isinstance(shares, dict) or not all(
        isinstance(share, (int, float)) and 0 <= share <= 1 for share in shares.values()
    ):
        raise ValueError(f"{key} should be {{class: share}}, or a list of shares")
    votes = _count(record, size)
    counts = {text(name): round(share * votes) for name, share in shares.items()}
    errors = [abs(share * votes - round(share * votes)) for share in shares.values()]
    if max(errors, default=0.0) > 0.01 * votes + 1e-6 or sum(counts.values()) != votes:
        raise ValueError(f"{key} does not come from {votes} votes")
    return counts


def _count(record: Record, key: str) -> int:
    if not _is_count(record.get(key)):
        raise ValueError(f"{key} is {record.get(key)!r}, which is not a count")
    return int(float(record[key]))


FORMAT = Format("votes", recognises=recognises, read=read)
