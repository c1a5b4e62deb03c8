"""Data sets with one row for each item, and lists of annotators and labels.

Many sets on Hugging Face are like this: `annotators: [a, b]` with `labels: [yes, no]`, or
`annotations: [{annotator: a, label: yes}, …]`. Every list that is as long as the list of
annotators in all rows is a question. Lists in lists are several labels at once. A folder that
`save_to_disk` wrote is read like a file, and so is one of a card with Parquet files; splits are a
column, and an item that occurs in several of them is one for each. Classes have the names that
the features declare, also in a Parquet file that `datasets` wrote.

Written are tables for Hugging Face `datasets`, a row for every item: `labels` and `annotators` are
parallel lists, and so is whatever is carried along. A result adds `label`, `confidence` and
`soft_label`, a structure with the posterior probability of every class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import polars as pl

from ...answers.left_out import LeftOut
from ..columns import CARRIED, NEEDED, TRUTH, plain_name
from ..content import Content
from ..format import Export, Format, Head, Question, Target
from ..frames import series_of
from ..platforms import as_label, named_by_inputs, question_of
from ..sources import Source
from ..tables import read_columns, rows_of
from . import doccano

_PEOPLE = {name + ending for name in NEEDED["annotator"] for ending in ("", "s", "_list")}
_IDS = {*NEEDED["item"], "id", "uid", "idx", "index", "comment_id", "tweet_id", "post_id"}
_TEXTS = ("text", "sentence", "comment", "tweet", "post", "content", "premise", "hypothesis")
_ABOUT = {*CARRIED, "source", "status"} - {"gold"}  # lists about the answers
_GOLD = {name for name in TRUTH["label"] if name not in NEEDED["label"]}


def recognises(head: Head) -> bool:
    """Return whether records hold annotators and labels in lists."""
    if head.shape not in ("records", "table") or not head.records or doccano.recognises(head):
        return False  # doccano has lists of structures, too
    records = _spread(head.records)
    people = _people(records)
    return people is not None and bool(_parallel(records, people))


def read(source: Source) -> Export:
    """Return the answers of every list that is parallel to the annotators."""
    records, classes = _records(source)
    people = _people(records)
    if people is None:
        raise source.fail("no list of annotators with parallel lists of labels in every record")
    lists = _parallel(records, people)
    if not lists:
        raise source.fail(_uneven(records, people))
    ids = _apart(ids_of(records), records)
    position = [row for row, record in enumerate(records) for _ in record.get(people) or ()]
    rows = pl.DataFrame(
        {"item": ids.gather(position), "annotator": list(map(_name, _values(records, people)))},
        schema={"item": pl.String, "annotator": pl.String},
    )
    if all(isinstance(record.get("split"), str) for record in records):
        split = pl.Series("split", [str(record["split"]) for record in records])
        rows = rows.with_columns(split.gather(position))
    blank = [not record.get(people) for record in records]
    unlabelled = LeftOut(items=tuple(ids.filter(pl.Series(blank, dtype=pl.Boolean)).to_list()))
    gold = _gold(records, ids, {people, *lists})
    questions = [name for name in lists if plain_name(name) not in _ABOUT]
    if questions:
        columns = [name for name in lists if name not in questions]
        rows = rows.with_columns(
            series_of(plain_name(name), _values(records, name)) for name in columns
        )
    export: dict[str, Question] = {}
    for name in questions or lists:
        values = _values(records, name)
        if name in classes:  # declared: no list in disguise, and no gap but null
            label = pl.Series("label", values, dtype=pl.String)
            gaps = [None] * label.null_count()
            left_out = question_of(rows.filter(label.is_null()), gaps).left_out
            answers = rows.with_columns(label).drop_nulls("label")
            export[name] = Question(answers, classes=classes[name], left_out=left_out)
        else:
            export[name] = question_of(rows, values)
        export[name] = replace(export[name], left_out=export[name].left_out + unlabelled)
        labels, known = export[name].contents(), dict[str, Any](gold)
        if export[name].kind == "sets":
            labels = [options[0] for options in labels if len(options) == 1]
            known = {item: [label] for item, label in gold.items()}
        if not {*gold.values()}.isdisjoint(labels):
            export[name] = replace(export[name], gold=known)
    return Export(export, texts_in(records, ids))


def _records(source: Source) -> tuple[list[dict[str, Any]], dict[str, tuple[str, ...]]]:
    """Return records with parallel lists, and the classes that columns declare."""
    if source.format in ("json", "jsonl"):
        return _spread(rows_of(source)), {}
    frame = read_columns(source, None)
    records = _spread(frame.to_dicts())
    return records, _declared(frame.schema, {name for record in records[:1] for name in record})


def _declared(schema: Mapping[str, Any], names: set[str]) -> dict[str, tuple[str, ...]]:
    """Return the classes of every list of classes, also of those in a structure."""
    lists: dict[str, Any] = {}
    for key, kind in schema.items():
        inner = _inner(kind)
        if key in names:
            lists[key] = inner
        elif isinstance(inner, pl.Struct):
            for field in inner.fields:
                long = f"{key}.{field.name}"
                lists[long if long in names else field.name] = _inner(field.dtype)
    return {
        name: tuple(kind.categories.to_list())
        for name, kind in lists.items()
        if isinstance(kind, pl.Enum)
    }


def _inner(kind: Any) -> Any:
    return kind.inner if isinstance(kind, pl.List) else kind


def _spread(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return records in which lists of structures with annotators are parallel lists."""
    keys = dict.fromkeys(key for record in records for key in record)
    fields_of = {key: fields for key in keys if (fields := _fields(records, key))}
    if not fields_of:
        return [dict(record) for record in records]
    n_uses = Counter([*(keys - fields_of.keys()), *chain.from_iterable(fields_of.values())])
    names = {
        key: {field: f"{key}.{field}" if n_uses[field] > 1 else field for field in fields}
        for key, fields in fields_of.items()
    }
    return [_spread_one(record, names) for record in records]


def _fields(records: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    """Return the fields of a list of structures, or of a structure of lists, with annotators."""
    values = [record[key] for record in records if record.get(key) is not None]
    in_lists = all(isinstance(value, list) for value in values)
    structures = [structure for value in values for structure in value] if in_lists else values
    if not all(isinstance(structure, dict) for structure in structures):
        return []
    fields = list(dict.fromkeys(field for structure in structures for field in structure))
    if not any(plain_name(field) in _PEOPLE for field in fields):
        return []
    lists = all(_is_list(structure.get(field)) for structure in structures for field in fields)
    return fields if in_lists or lists else []


def _spread_one(
    record: Mapping[str, Any], names: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    flat = {key: value for key, value in record.items() if key not in names}
    for key, fields in names.items():
        value = record.get(key) or {}
        for field, name in fields.items():
            values: Any = value.get(field) if isinstance(value, dict) else None
            flat[name] = values or [] if isinstance(value, dict) else [e.get(field) for e in value]
    return flat


def _apart(ids: pl.Series, records: Sequence[Mapping[str, Any]]) -> pl.Series:
    """Return the names of items, with their split where one occurs in several splits."""
    splits = [record.get("split") for record in records]
    if not all(isinstance(split, str) for split in splits):
        return ids
    frame = pl.DataFrame({"item": ids, "split": splits})
    if frame.n_unique() == frame.n_unique("item"):
        return ids
    return frame.select(pl.concat_str("split", "item", separator="/").alias("item")).to_series()


def _values(records: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [value for record in records for value in record.get(name) or ()]


def ids_of(records: Sequence[Mapping[str, Any]]) -> pl.Series:
    """Return a name for every record: its id, or its texts, or its number."""
    keys = list(dict.fromkeys(key for record in records for key in record))
    for key in sorted(keys, key=lambda key: plain_name(key) in ("id", "index", "idx")):
        if plain_name(key) in _IDS and all(_is_name(record.get(key)) for record in records):
            return pl.Series("item", [_name(record[key]) for record in records], dtype=pl.String)
    inputs = [key for key in keys if all(isinstance(record.get(key), str) for record in records)]
    text_keys = [key for key in inputs if plain_name(key) in _TEXTS]
    if not text_keys:
        return pl.Series("item", [str(row) for row in range(len(records))], dtype=pl.String)
    return named_by_inputs(
        pl.DataFrame({key: [record[key] for record in records] for key in text_keys}), text_keys
    )


def texts_in(records: Sequence[Mapping[str, Any]], ids: pl.Series) -> pl.DataFrame | None:
    """Return item and text, where records have one."""
    keys = dict.fromkeys(key for record in records for key in record)
    text_keys = [key for key in keys if plain_name(key) in _TEXTS]
    if not text_keys:
        return None
    bodies = ["\n".join(as_label(record.get(key)) for key in text_keys) for record in records]
    frame = pl.DataFrame({"item": ids, "text": pl.Series(bodies, dtype=pl.String)})
    return frame.unique("item", maintain_order=True)


def _name(value: Any) -> str:
    """Return the name of an item or annotator; a text as it is."""
    return value if isinstance(value, str) else as_label(value)


def _is_name(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and as_label(value) != ""


def _people(records: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the key of the lists of annotators."""
    keys = dict.fromkeys(key for record in records for key in record)
    for key in keys:
        values = [record.get(key) for record in records]
        if plain_name(key) in _PEOPLE and all(_is_list(value, scalars=True) for value in values):
            return key if any(values) else None
    return None


def _parallel(records: Sequence[Mapping[str, Any]], people: str) -> list[str]:
    """Return the keys whose lists are as long as the list of annotators in every record."""
    keys = dict.fromkeys(key for record in records for key in record if key != people)
    return [
        key
        for key in keys
        if all(_is_list(record.get(key)) for record in records)
        and all(len(record.get(key) or ()) == len(record.get(people) or ()) for record in records)
    ]


def _is_list(value: Any, scalars: bool = False) -> bool:
    if value is None:
        return True
    return isinstance(value, list) and not (
        scalars and any(isinstance(value, (dict, list)) for value in value)
    )


def _uneven(records: Sequence[Mapping[str, Any]], people: str) -> str:
    for row, record in enumerate(records, 1):
        for key, value in record.items():
            if (
                key != people
                and isinstance(value, list)
                and len(value) != len(record.get(people) or ())
            ):
                return (
                    f"row {row}: {len(record.get(people) or ())} {people}, but {len(value)} {key}"
                )
    return f"no list of labels with {people!r}"


def _gold(
    records: Sequence[Mapping[str, Any]], ids: pl.Series, reserved: set[str]
) -> dict[str, str]:
    """Return item → gold, where one key names it."""
    keys = {key for record in records for key in record if plain_name(key) in _GOLD} - reserved
    if len(keys) != 1:
        return {}
    key = keys.pop()
    return {
        item: as_label(record.get(key))
        for item, record in zip(ids.to_list(), records, strict=True)
        if _is_name(record.get(key))
    }


def write(content: Content) -> pl.DataFrame:
    """Return a row for every item: texts, gold, labels and annotators, and what a result adds."""
    return _with_result(content) if content.is_result else _lists(content)


def _lists(content: Content) -> pl.DataFrame:
    """Return item, text where it is known, labels and annotators, and gold where it is known."""
    annotations = content.annotations
    lists = (
        annotations.to_polars()
        .rename({"label": "labels", "annotator": "annotators"})
        .group_by("item", maintain_order=True)
        .all()
    )
    names = annotations.items.tolist()
    frame = pl.DataFrame({"item": names}, schema={"item": pl.String})
    for name, values in (("text", content.texts), ("gold", content.gold)):
        if values:
            column = pl.Series(name, [values.get(item) for item in names], dtype=pl.String)
            frame = frame.with_columns(column)
    frame = frame.join(lists, on="item", how="left", maintain_order="left")
    return frame.with_columns(pl.col(pl.List).fill_null([]))


def _with_result(content: Content) -> pl.DataFrame:
    """Return the same with label and confidence of every item, or number and standard error."""
    table = content.what.to_polars().drop("item")
    classes = [name for name in table.columns if name.startswith("p:")]
    probabilities = table.select(pl.col(name).alias(name.removeprefix("p:")) for name in classes)
    frame = _lists(content).with_columns(table.drop(classes))
    if not probabilities.width:
        return frame
    return frame.with_columns(probabilities.to_struct("soft_label"))


FORMAT = Format(
    "huggingface",
    recognises=recognises,
    read=read,
    kinds=("sets",),
    labels=Target(
        summary="a table with a row for each item and lists of labels and annotators",
        kinds=("parquet", "jsonl"),
        write=write,
        holds=frozenset({"unlabelled", "repeats", "gold", "texts"}),
        columns=None,
    ),
)
