"""Tables in memory, of whatever library, as dataframes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import polars as pl

from ..answers.left_out import LeftOut
from ..base.names import text
from ..errors import DataError


def as_frame(table: Any) -> pl.DataFrame:
    """Return a polars, pandas or Arrow table, or a mapping of columns, as polars."""
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if _is_pandas(table):
        table = _with_index(table)
    if isinstance(table, Mapping) or _is_pandas(table):
        # Column by column through Python: no Arrow needed, and mixed columns survive.
        return frame_of({str(name): _values_of(str(name), table[name]) for name in table})
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "__dataframe__"):
        return pl.DataFrame(table)
    raise DataError(
        f"cannot read {type(table).__name__} as a table; give a path, a pandas, polars or Arrow "
        "table, or a mapping of columns"
    )


def _with_index(table: Any) -> Any:
    """Return a pandas table with its index as columns, except nameless numbers of rows."""
    names = [name for name in table.index.names if name is not None]
    if not names and table.index.nlevels == 1 and table.index.dtype.kind not in "iu":
        return table.rename_axis("index").reset_index()
    return table.reset_index(names)


def frame_of_labels(source: Any) -> pl.DataFrame:
    """Return a label per item as a table: of a table, or of a mapping or pandas Series of items.

    >>> frame_of_labels({"a": "cat", "b": None, 7: 1.5}).to_dict(as_series=False)
    {'item': ['a', 'b', '7'], 'label': ['cat', None, '1.5']}
    """
    if _is_pandas(source) and source.ndim == 1:
        source = {"item": source.index, "label": source}
    elif isinstance(source, Mapping) and not any(map(_is_column, source.values())):
        labels = [
            text(label) if label is not None and label == label else None
            for label in source.values()
        ]
        source = {"item": [*map(text, source)], "label": labels}
    return as_frame(source)


def _is_pandas(table: Any) -> bool:
    return type(table).__module__.startswith("pandas")


def _is_column(values: Any) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping))


def _values_of(name: str, values: Any) -> list[Any]:
    if _is_pandas(values):
        return list(values.astype(object).where(values.notna(), None))
    if hasattr(values, "tolist"):
        return list(values.tolist())
    if _is_column(values):
        return list(values)
    raise DataError(
        f"{name!r} is neither a column nor {{annotator: label}}, but a {type(values).__name__}"
    )


def frame_of(
    columns: Mapping[str, list[Any]], fail: Callable[[str], DataError] = DataError
) -> pl.DataFrame:
    """Return columns of equal length, of any kind of values, as a table."""
    if len({len(values) for values in columns.values()}) > 1:
        sizes = ", ".join(f"{name} {len(values)}" for name, values in list(columns.items())[:12])
        raise fail(f"columns of different length: {sizes}")
    try:
        return pl.DataFrame({name: series_of(name, values) for name, values in columns.items()})
    except UnicodeEncodeError:  # JSON can name half a character
        raise fail("a text in it is not valid Unicode") from None


def one_answer_each(
    answers: Mapping[Any, Any], duplicates: str, name: str, missing: str = "error"
) -> tuple[Mapping[Any, Any], LeftOut]:
    """Return `{item: {annotator: label}}` with one label where there is a list of them.

    Labels that are null are left out if `missing` is `drop`; also returned is what was left out.
    """
    blank: dict[Any, None] = {}  # annotators without a label on some item
    if duplicates == "count" and missing != "drop":
        blank |= {
            annotator: None
            for by_annotator in answers.values()
            for annotator, labels in by_annotator.items()
            if labels == []
        }
        return answers, LeftOut(annotators=tuple(map(text, blank)))
    n_blank = n_repeated = 0
    kept_answers: dict[Any, Any] = {}
    for item, by_annotator in answers.items():
        labels_of = by_annotator
        for annotator, labels in by_annotator.items():
            is_list = isinstance(labels, (list, tuple))
            kept_labels = labels if is_list else (labels,)
            if missing == "drop":
                kept_labels = [label for label in kept_labels if not _is_null(label)]
                n_blank += (len(labels) if is_list else 1) - len(kept_labels)
            if len(kept_labels) > 1 and duplicates == "error":
                raise labelled_again(text(item), text(annotator), name)
            if len(kept_labels) > 1 and duplicates != "count":
                n_repeated += len(kept_labels) - 1
                kept_labels = kept_labels[:1] if duplicates == "first" else kept_labels[-1:]
            if not kept_labels:
                blank[annotator] = None
            if len(kept_labels) != (len(labels) if is_list else 1):
                labels_of = dict(by_annotator) if labels_of is by_annotator else labels_of
                labels_of[annotator] = list(kept_labels)
        kept_answers[item] = labels_of
    rows = {"without a label": n_blank, "repeated": n_repeated}
    rows = {reason: count for reason, count in rows.items() if count}
    return kept_answers, LeftOut(rows, annotators=tuple(map(text, blank)))


def labelled_again(item: str, annotator: str, where: str) -> DataError:
    """Return an error about an annotator who labelled an item more than once."""
    message = f"annotator {annotator!r} labelled item {item!r} more than once"
    remedy = "{} or last keeps one label"
    return DataError(message, where=where, remedy=remedy, duplicates="first")


def _is_null(label: Any) -> bool:
    return label is None or label == "" or label != label


def series_of(name: str, values: list[Any]) -> pl.Series:
    """Return values of any kind as a column; mixed ones as texts."""
    values = [None if value is None or value != value else value for value in values]
    kinds = {type(value) for value in values if value is not None}
    mixed = len(kinds) > 1 and not kinds <= {int, float}
    largest = max((abs(value) for value in values if type(value) is int), default=0)
    rounded = largest > (2**53 if float in kinds else 2**63 - 1)  # two numbers would become one
    if mixed or rounded or any(getattr(value, "nanosecond", 0) for value in values):
        values = [value if value is None else text(value) for value in values]
    return pl.Series(name, values, strict=False)


def names_of(column: pl.Series) -> pl.Series:
    """Return a column of any type as the names that its values give, null where it is empty.

    >>> names_of(pl.Series([1.0, 2.5, None])).to_list()
    ['1', '2.5', None]
    """
    kind = column.dtype
    if kind == pl.Time:  # Python's times are less exact than nanoseconds
        return column.dt.to_string("%H:%M:%S%.9f")
    if isinstance(kind, pl.Duration):
        return column.dt.to_string()
    if isinstance(kind, pl.Datetime) and kind.time_unit == "ns":
        return column.cast(pl.String)
    if kind.is_float():
        column = column.fill_nan(None)
    if kind.is_float() or kind.is_temporal() or kind.is_decimal() or kind.is_nested():
        distinct = column.unique().drop_nulls()
        names = pl.Series([text(value) for value in distinct.to_list()], dtype=pl.String)
        keys = pl.DataFrame({"value": distinct, "name": names})
        values = column.alias("value").to_frame()
        return values.join(keys, on="value", how="left", maintain_order="left")["name"]
    try:
        texts = column.cast(pl.String)
    except pl.exceptions.PolarsError:
        if kind == pl.Binary:
            raise DataError(f"the {column.name} holds bytes that are not UTF-8 text") from None
        texts = pl.Series([value if value is None else str(value) for value in column])
    return texts if (texts != "").all() else texts.set(texts == "", None)
