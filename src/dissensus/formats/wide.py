"""Wide tables: one row for each item, one column for each annotator, gaps where there is no label.

cleanlab and MACE use them, and so do many published matrices of whole numbers with -1 for "no
label", separated by commas, tabs or spaces. The first column may name the item, the first line
the annotators. A table is taken for wide only if its columns share their labels; in a long table
items, annotators and labels have names of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count

import numpy as np
import polars as pl

from ..answers.left_out import LeftOut
from ..base.names import text
from ..errors import Note, OptionError
from .columns import NEEDED, NO_LABEL, is_known, no_label_note, plain_name
from .content import Content
from .format import TABLES, Export, Format, Head, Question, Target
from .line_faults import without_headers
from .long_tables import without_spaces
from .sources import Source
from .tables import blank_lines, read_columns, read_unnamed, with_one_header

_GAPS = ("", *NO_LABEL)
WHOLE = r"^[+-]?\d{1,4}(\.0)?$"
_WHOLE = re.compile(WHOLE)
_MOST_CLASSES = 30
_MOST_CELLS = 10**8
_FIRST = (20, 199)  # rows by which tables with types are recognised, and texts with a header
_IDS = {*NEEDED["item"], "id", "index", "unnamed:_0", ""}


def recognises(head: Head) -> bool:
    """Return whether the columns of a table share their labels."""
    if head.shape != "table" and not (head.shape == "records" and _has_one_shape(head)):
        return False
    if head.lines:
        return _layout(_split(head.lines)) is not None
    return _layout(_as_lines(head), has_names=True) is not None


def recognises_lines(lines: Sequence[tuple[str, ...]]) -> bool:
    """Return whether a header and rows, as texts, show by themselves that they are a wide table."""
    return _layout(lines, has_names=True) is not None


def read(source: Source) -> Export:
    """Return one row for each label of a wide table."""
    frame = _table(source)
    lines = with_one_header([row for row in frame.head(200).fill_null("").rows() if any(row)])
    if not lines or frame.width < 2:
        raise source.fail("a wide table has a column for each annotator, and here is one column")
    has_names = source.format not in ("csv", "tsv")
    header, ids = _layout(lines, has_names=has_names) or _header_and_ids(lines, has_names)
    ids |= header and plain_name(lines[0][0] or "") in NEEDED["item"]  # though one comes twice
    names = [str(cell or "") for cell in frame.row(0)] if header else []
    if header:
        frame = without_headers(source, frame.slice(1), names)
    people = frame.columns[1:] if ids else frame.columns
    names_of = dict(zip(frame.columns, _annotators(names or frame.columns), strict=True))
    item = frame[frame.columns[0]] if ids else pl.Series([str(n) for n in range(frame.height)])
    answers = (
        frame.select(item.alias("item"), *people)
        .unpivot(index="item", variable_name="annotator", value_name="label")
        .filter(pl.col("label").fill_null("") != "")
    )
    words = answers["label"].str.to_lowercase().is_in(NO_LABEL)
    notes = no_label_note(answers["label"].filter(words).to_list(), "taken for no label")
    answers = answers.filter(~words).with_columns(without_spaces(answers["label"].filter(~words)))
    whole = answers["label"].str.contains(WHOLE).all()
    if whole:
        answers = answers.with_columns(pl.col("label").str.replace(r"\.0$", ""))
        answers = answers.filter(pl.col("label") != "-1")
    answers = answers.with_columns(pl.col("annotator").replace_strict(names_of))
    n_items, left_out = frame.height, LeftOut()
    if answers["item"].n_unique() < frame.height or answers["annotator"].n_unique() < len(people):
        items = item.filter(item.is_not_null() if ids else _are_rows(source, frame)).to_list()
        n_items = len(items)
        annotators = tuple(names_of[column] for column in people)
        left_out = LeftOut(
            items=tuple(items), annotators=annotators
        )  # as far as they have no label
    note = (
        f"read as a wide table: {len(people)} annotators in columns, "
        f"{n_items} items in rows{', -1 for no label' if whole else ''}"
    )
    return Export({"label": Question(answers, left_out=left_out)}, notes=(note, *notes))


def _are_rows(source: Source, frame: pl.DataFrame) -> pl.Series:
    """Return which rows are lines with fields; blank lines at the end are none."""
    filled = frame.select(~pl.all_horizontal(pl.all().is_null())).to_series()
    blank = blank_lines(source, int(filled.reverse().arg_max() or 0))
    return pl.Series(range(frame.height)) < frame.height - blank


def _annotators(names: Sequence[str]) -> list[str]:
    """Return names for columns; a repeated or empty one gets its number."""
    times = Counter(names)
    return [
        name if name and times[name] == 1 else f"{name or 'column'} {position}"
        for position, name in enumerate(names, 1)
    ]


def _table(source: Source) -> pl.DataFrame:
    """Return all fields as texts, the names of columns among them as the first row."""
    if source.format in ("csv", "tsv"):
        frame = read_unnamed(source)
        return _by_spaces(source, frame) if frame.width == 1 else frame
    frame = read_columns(source, None)
    if any(kind.is_nested() or kind == pl.Binary for kind in frame.dtypes):
        raise source.fail("lists in its columns, and a wide table has one label in a field")
    names = pl.DataFrame({name: [name] for name in frame.columns})
    rows = pl.concat([names, frame.cast(pl.String)])
    rows.columns = [str(position) for position in range(1, frame.width + 1)]
    return rows


def _has_one_shape(head: Head) -> bool:
    """Return whether records are rows of one table."""
    return len(head.records) == len(head.first) and all(
        tuple(row) == head.names for row in head.records
    )


def _as_lines(head: Head) -> list[tuple[str, ...]]:
    """Return the names and first rows of a table that has types, as texts."""
    rows = [tuple(row.values()) for row in head.records]
    if any(isinstance(cell, (list, dict, bytes)) for row in rows for cell in row):
        return []
    return [
        head.names,
        *(tuple("" if cell is None else text(cell) for cell in row) for row in rows),
    ]


def _split(lines: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return fields; a single one of whole numbers with spaces between them is a row of them."""
    if any(len(line) > 1 for line in lines):
        return list(lines)
    parts = [tuple(line[0].split()) if line else () for line in lines]
    return parts if all(_WHOLE.match(cell) for row in parts for cell in row) else list(lines)


def _by_spaces(source: Source, frame: pl.DataFrame) -> pl.DataFrame:
    rows = [(line or "").split() for line in frame.to_series().to_list()]
    rows = [row for row in rows if row]
    width = len(rows[0]) if rows else 0
    for position, row in enumerate(rows, 1):
        if len(row) != width:
            raise source.fail(f"row {position}: {len(row)} fields, but the first has {width}")
    return pl.DataFrame(
        [
            pl.Series(str(n), column, dtype=pl.String)
            for n, column in enumerate(zip(*rows, strict=True), 1)
        ]
    )


def _layout(lines: Sequence[Sequence[str]], *, has_names: bool = False) -> tuple[bool, bool] | None:
    """Return whether there is a header and a column of ids, if this is a wide table at all.

    With `has_names`, the first line is one, whatever it looks like.
    """
    lines = [line for line in lines if any(line)]
    if len(lines) < 2 or len({len(line) for line in lines}) > 1 or len(lines[0]) < 2:
        return None
    header, ids = _header_and_ids(lines, has_names)
    if header and any(map(is_known, lines[0][1:] if ids else lines[0])):
        return None
    columns = list(zip(*(lines[1:] if header else lines), strict=True))[1 if ids else 0 :]
    columns = [_plain(column) for column in columns]
    return (header, ids) if len(columns) > 1 and _share_labels(columns) else None


def _plain(column: Sequence[str]) -> tuple[str, ...]:
    """Return the fields of a column, numbers without the spaces beside them."""
    return tuple(cell.strip() if _WHOLE.match(cell.strip()) else cell for cell in column)


def _has_header(lines: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line names columns: none of its texts is a label below."""
    below = {cell.strip() for line in lines[1:] for cell in line[1:]} - {"", None}
    cells = [cell for cell in lines[0][1:] if cell and cell.strip().lower() not in _GAPS]
    if plain_name(lines[0][0] or "") in _IDS - {""}:
        return True
    return bool(cells) and not any(cell.strip() in below or _WHOLE.match(cell) for cell in cells)


def _header_and_ids(lines: Sequence[Sequence[str]], has_names: bool) -> tuple[bool, bool]:
    header = has_names or _has_header(lines)
    return header, _has_ids(lines, header)


def _has_ids(lines: Sequence[Sequence[str]], header: bool) -> bool:
    """Return whether the first column names items: all different, and no labels elsewhere."""
    rows = lines[1:] if header else lines
    ids = [line[0] for line in rows]
    if header and plain_name(lines[0][0] or "") in _IDS and len({*ids}) == len(ids):
        return True
    elsewhere = {cell.strip() for line in rows for cell in line[1:]}
    return len(ids) > 1 and len({*ids}) == len(ids) and not elsewhere & {*ids}


def _share_labels(columns: Sequence[tuple[str, ...]]) -> bool:
    """Return whether columns are answers of different people to the same question."""
    filled = [{cell for cell in column if cell.lower() not in _GAPS} for column in columns]
    labels = set().union(*filled)
    gaps = sum(any(cell.lower() in (*_GAPS, "-1") for cell in column) for column in columns)
    cells = sum(cell.lower() not in _GAPS for column in columns for cell in column)
    if not labels or len(labels) > _MOST_CLASSES or 2 * len(labels) > cells:
        return False
    if len(labels) < 2:
        return False
    if all(_WHOLE.match(label) for label in labels):  # codes of items look the same
        covered = sum(map(len, filled)) / (len(labels) * len(columns))
        return 2 * gaps > len(columns) or (len(columns) > 4 and covered > 0.5)
    columns_with = Counter(label for labels_in in filled for label in labels_in)
    return all(
        any(columns_with[label] > 1 for label in labels_in) for labels_in in filled if labels_in
    )


def write(content: Content) -> pl.DataFrame:
    """Return a row for every item; a cell is empty where an annotator did not label it."""
    annotations = content.annotations
    cells = annotations.n_items * annotations.n_annotators
    if cells > _MOST_CELLS:
        raise OptionError(
            f"a wide table of {annotations.n_items} items and {annotations.n_annotators} "
            f"annotators has {cells:.1g} cells, nearly all of them empty; write a long one"
        )
    annotators = annotations.annotators.tolist()
    usual = chain(("item", "item_id", "task"), (f"item {position}" for position in count(2)))
    in_use = {*annotators, *annotations.items.tolist()}  # no row may look like the header again
    key = next(name for name in usual if name not in in_use)
    long = content.what.to_polars().select(pl.col("item").alias(key), "annotator", "label")
    cells_of = long.pivot(on="annotator", index=key, values="label", aggregate_function="first")
    wide = pl.DataFrame({key: annotations.items.tolist()}, schema={key: pl.String}).join(
        cells_of, on=key, how="left", maintain_order="left"
    )
    unused = [
        pl.lit(None, long.schema["label"]).alias(name)
        for name in annotators
        if name not in cells_of.columns
    ]
    return wide.with_columns(unused).select(key, *annotators)


def _shows_itself(content: Content) -> bool:
    """Return whether the reader recognises the first rows as a wide table."""
    annotations = content.labels_of_classes
    if annotations is not None:
        is_first = np.arange(annotations.n_items) < _FIRST[-1]
        content = replace(content, what=annotations.subset(items=is_first))
    frame = write(content).head(_FIRST[-1]).cast(pl.String).fill_null("")
    lines = [tuple(frame.columns), *frame.rows()]
    return all(recognises_lines(lines[: 1 + rows]) for rows in _FIRST)


def clashes(content: Content) -> list[str]:
    """Return which labels have no cell of their own, and which look like an empty one."""
    annotations = content.annotations
    sentences: list[str] = []
    repeats = int(annotations.repeats.sum())
    if repeats:
        sentences.append(
            f"{repeats} labels are left out: an annotator has one cell for an "
            "item, and the label that sorts first is kept"
        )
    if not _shows_itself(content):
        remedy = "its columns do not show that it is a wide table: {} reads it"
        sentences.append(Note("", remedy=remedy, format="wide"))
    if content.labels_of_classes is not None:
        names = content.labels_of_classes.classes.tolist()
        if all(re.fullmatch(WHOLE, name) for name in names):
            broken = [name for name in names if name.endswith(".0")]
            sentences += [f"the label {name!r} is read as {name[:-2]!r}" for name in broken]
        odd = [name for name in names if name.lower() in ("-1", *NO_LABEL)]
        sentences += [f"the label {name!r} may be read as an empty cell" for name in odd]
    ambiguous = [name for name in annotations.annotators.tolist() if is_known(name)]
    sentences += [
        f"the annotator {name!r} may be taken for a column of that name" for name in ambiguous
    ]
    return sentences


FORMAT = Format(
    "wide",
    recognises=recognises,
    read=read,
    labels=Target(
        summary="a table with a row for each item and a column for each annotator (cleanlab)",
        kinds=TABLES,
        write=write,
        holds=frozenset({"unlabelled"}),
        results=False,
        clashes=clashes,
    ),
)
