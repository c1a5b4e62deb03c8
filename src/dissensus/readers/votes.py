"""Counts of votes for every item, or shares with the number of votes, without annotators.

Such sets show how people split but not who gave which label. The votes on an item are read as
"vote 1", "vote 2", …; a method that models annotators learns nothing true from those. Counts are in
columns with a common prefix (`votes_cat`, `n0`), in columns whose sums are the same for all items,
or in an object `{class: count}`. Shares need the number of votes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from .._names import text
from .columns import CARRIED, NEEDED, plain_name
from .exports import Export, Head, Question
from .huggingface import ids_of, texts_in
from .sources import Source
from .tables import rows_of

__all__ = ["read", "recognises"]

_NOTE = "only counts of votes: annotators are unknown and named 'vote 1', 'vote 2', …"
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
    return _source_of_votes(head.records) is not None


def read(source: Source) -> Export:
    """Return one row for each vote."""
    records = rows_of(source)
    counter = _source_of_votes(records) or _source_of_votes(records, explicit=True)
    if counter is None:
        raise source.fail("no counts of votes: columns votes_…, or an object {class: count}")
    classes, counts = counter(source, records)
    ids = ids_of(records)
    item, label, vote = _one_by_one(counts)
    answers = pl.DataFrame(
        {
            "item": ids.gather(item),
            "annotator": pl.Series("vote " + pl.Series(vote + 1).cast(pl.String)),
            "label": pl.Series(classes, dtype=pl.String).gather(label),
        }
    )
    if all(isinstance(one.get("split"), str) for one in records):
        split = pl.Series("split", [str(one["split"]) for one in records])
        answers = answers.with_columns(split.gather(item))
    question = Question(answers, classes=tuple(classes))
    return Export({"votes": question}, texts_in(records, ids), (_NOTE,))


def _one_by_one(counts: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
    """Return item, class and number within its item of every vote of a table (item, class)."""
    item, label = np.nonzero(counts)
    times = counts[item, label]
    item, label = np.repeat(item, times), np.repeat(label, times)
    first = np.searchsorted(item, item)  # where the votes on the same item begin
    return item, label, np.arange(len(item)) - first


def _source_of_votes(records: Sequence[Mapping[str, Any]], explicit: bool = False) -> Any:
    """Return the function that reads classes and counts from such records, if there is one."""
    keys = list(dict.fromkeys(key for one in records for key in one))
    for key in keys:
        if plain_name(key) in _COUNTS and all(_is_table(one.get(key)) for one in records):
            return lambda source, rows: _from_objects(source, rows, key)
    for key in keys:
        if plain_name(key) in _SHARES:
            return lambda source, rows: _from_shares(source, rows, key)
    named = [key for key in keys if _PREFIX.match(key) and _counts_in(records, key)]
    if len(named) > 1:
        return lambda source, rows: _from_columns(source, rows, named)
    known = {*CARRIED["split"], *NEEDED["item"], "id", "index"}
    plain = [key for key in keys if plain_name(key) not in known and _counts_in(records, key)]
    if len(plain) > 1 and (explicit or _sums_alike(records, plain, keys)):
        return lambda source, rows: _from_columns(source, rows, plain)
    return None


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and len(value) > 0 and all(map(_is_count, value.values()))


def _is_count(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().isdecimal() and len(value) < 10
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and 0 <= value < 10**9 and float(value).is_integer()


def _counts_in(records: Sequence[Mapping[str, Any]], key: str) -> bool:
    return all(_is_count(one.get(key)) for one in records)


def _sums_alike(records: Sequence[Mapping[str, Any]], named: list[str], keys: list[str]) -> bool:
    """Return whether columns add up to about the same in all rows, and some row is near agreed."""
    others = [key for key in keys if key not in named]
    if len(records) < 3 or not any(plain_name(key) in (*NEEDED["item"], "id") for key in others):
        return False
    table = np.array([[int(float(one[key])) for key in named] for one in records])
    sums = table.sum(axis=1)
    return bool(
        len(named) > 2
        and table.max() > 2
        and sums.min() >= 0.6 * sums.max()
        and (table.max(axis=1) > 0.6 * sums).any()
    )


def _from_columns(
    source: Source, records: Sequence[Mapping[str, Any]], keys: Sequence[str]
) -> tuple[list[str], npt.NDArray[np.int64]]:
    for row, one in enumerate(records, 1):
        wrong = next((key for key in keys if not _is_count(one.get(key))), None)
        if wrong is not None:
            raise source.fail(f"row {row}: {wrong} is {one.get(wrong)!r}, which is not a count")
    counts = np.array([[int(float(one[key])) for key in keys] for one in records], dtype=np.int64)
    matches = [_PREFIX.match(key) for key in keys]
    names = [match[1] if match else key for key, match in zip(keys, matches, strict=True)]
    return _checked(source, names, counts)


def _from_objects(
    source: Source, records: Sequence[Mapping[str, Any]], key: str
) -> tuple[list[str], npt.NDArray[np.int64]]:
    for row, one in enumerate(records, 1):
        if not (one.get(key) is None or _is_table(one[key])):
            raise source.fail(f"row {row}: {key} should be {{class: count}}")
    names = list(dict.fromkeys(name for one in records for name in one.get(key) or {}))
    counts = [[int(float((one.get(key) or {}).get(name, 0))) for name in names] for one in records]
    return _checked(source, names, np.array(counts, dtype=np.int64))


def _from_shares(
    source: Source, records: Sequence[Mapping[str, Any]], key: str
) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return counts from shares and the number of votes, which must fit each other."""
    keys = dict.fromkeys(name for one in records for name in one)
    size = next((name for name in keys if plain_name(name) in _SIZES), None)
    if size is None:
        raise source.fail(
            f"{key} has shares but not of how many votes; add a column number_of_annotations"
        )
    tables = [_shares(source, one.get(key), row, key) for row, one in enumerate(records, 1)]
    names = list(dict.fromkeys(name for one in tables for name in one))
    counts = np.zeros((len(records), len(names)), dtype=np.int64)
    for row, (one, shares) in enumerate(zip(records, tables, strict=True)):
        if not _is_count(one.get(size)):
            raise source.fail(f"row {row + 1}: {size} is {one.get(size)!r}, which is not a count")
        votes = int(float(one[size]))
        exact = np.array([shares.get(name, 0.0) for name in names]) * votes
        near = np.round(exact)
        if np.abs(exact - near).max(initial=0.0) > 0.01 * votes + 1e-6 or near.sum() != votes:
            raise source.fail(f"row {row + 1}: {key} does not come from {votes} votes")
        counts[row] = near
    return _checked(source, names, counts)


def _shares(source: Source, given: Any, row: int, key: str) -> dict[str, float]:
    if isinstance(given, list):
        given = {str(position): share for position, share in enumerate(given)}
    good = isinstance(given, dict) and all(
        isinstance(share, (int, float)) and 0 <= share <= 1 for share in given.values()
    )
    if not good:
        raise source.fail(f"row {row}: {key} should be {{class: share}}, or a list of shares")
    return {text(name): float(share) for name, share in given.items()}


def _checked(
    source: Source, names: Sequence[str], counts: npt.NDArray[np.int64]
) -> tuple[list[str], npt.NDArray[np.int64]]:
    total = int(counts.sum())
    if total == 0:
        raise source.fail("no votes at all")
    if total > 10**8:
        raise source.fail(f"{total} votes are more than can be read one by one")
    return list(names), counts
