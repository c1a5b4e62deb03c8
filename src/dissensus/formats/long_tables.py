"""Long tables, also without a header: item, annotator, label; or annotator, item, label, gold.

The first is how crowd-truth sets are published, the second is the active crowd toolkit's. A
table has no header if its first line looks like those below. What is assumed about columns is in
a note; `--columns item=2,annotator=1,label=3` overrides it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..answers.annotations import Annotations
from ..answers.annotators import kind_of_word
from ..answers.left_out import LeftOut, with_left_out
from ..answers.numbers import Numbers
from ..base.arrays import Codes, smallest_dtype
from ..base.names import NUMBER, Distinct, Names, as_names, code, text
from ..errors import DataError, Note
from .cells import as_texts_of_times, code_texts
from .columns import CARRIED, NEEDED, NO_LABEL, ColumnOf, find_columns, is_known
from .format import Export, Format, Head, Question
from .frames import labelled_again, names_of
from .line_faults import without_headers
from .sources import Source, in_lines, open_source, ragged_line
from .tables import first_lines, line_of_row, read_roles, read_unnamed, without_empty

_LONGEST = 60  # characters of a label in a message
_WORKERS = ("w", "worker", "a", "ann", "annotator", "user", "u", "rater")


def annotations_from(
    frame: pl.DataFrame,
    *,
    columns: Mapping[str, str] | None = None,
    classes: Sequence[Any] | None = None,
    missing: str = "error",
    duplicates: str = "count",
    source: Source | None = None,
    left_out: LeftOut | None = None,
) -> Annotations:
    """Return the annotations of a long table, one row for each label, and what was left out.

    `left_out` has what was left out of the table before.
    """
    name = source.name if source else "table"
    roles = find_columns(frame.columns, NEEDED, columns, name, optional=CARRIED)
    frame = as_texts(frame.select(pl.col(column).alias(role) for role, column in roles.items()))
    gaps = any(frame[role].null_count() or frame.schema[role].is_float() for role in NEEDED)
    incomplete = LeftOut()
    if missing == "drop" or gaps:
        frame, incomplete = split_gaps(frame, missing, source)
    codes = code_columns(frame.select(list(NEEDED)))
    if any(len(names) and names[0] == "" for _, names in codes.values()):  # it is always first
        frame, incomplete = split_gaps(frame, missing, source)
        codes = code_columns(frame.select(list(NEEDED)))
    if duplicates != "count":
        height = frame.height
        frame = one_label_each(frame, duplicates, name)
        codes = code_columns(frame.select(list(NEEDED)))
        incomplete += repeated(height - frame.height)
    label, class_names = codes["label"]
    if classes is not None:
        label, class_names = _declared(label, class_names, as_names(classes), name)
    carried: Any = {role: as_array(frame[role]) for role in roles if role not in NEEDED}
    annotations = Annotations.from_codes(
        codes["item"][0],
        codes["annotator"][0],
        label,
        items=Distinct(codes["item"][1]),
        annotators=Distinct(codes["annotator"][1]),
        classes=class_names,
        **carried,
    )
    annotations = annotations.with_kinds(_kinds(frame, codes["annotator"], name))
    return with_left_out(annotations, incomplete if left_out is None else left_out + incomplete)


def _kinds(frame: pl.DataFrame, annotator: tuple[Codes, Names], source: str) -> list[str]:
    """Return the kinds of annotators that a column of rows gives, if its words are kinds."""
    kinds = [""] * len(annotator[1])
    for role in ("kind", "source"):
        if role not in frame.columns:
            continue
        words = frame[role].cast(pl.String)
        table = {word: kind_of_word(word) for word in words.drop_nulls().unique().to_list()}
        if not table or not all(table.values()):
            continue
        rows = pl.DataFrame({"annotator": annotator[0], "kind": words.replace_strict(table)})
        for code_, kind in rows.drop_nulls().unique(maintain_order=True).iter_rows():
            if kinds[code_] not in ("", kind):
                name = annotator[1][code_]
                raise DataError(
                    f"{name!r} is a {kinds[code_]} in one row, a {kind} in another", where=source
                )
            kinds[code_] = kind
        break
    return kinds


def as_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table with texts for categories and bytes, null where they are empty."""
    odd = [role for role in NEEDED if frame.schema[role] in (pl.Categorical, pl.Binary)]
    return frame.with_columns(names_of(frame[role]).alias(role) for role in odd) if odd else frame


def without_gaps(frame: pl.DataFrame, missing: str, source: Source | None = None) -> pl.DataFrame:
    """Return the rows that have item, annotator and label, as `split_gaps` does."""
    return split_gaps(frame, missing, source)[0]


def split_gaps(
    frame: pl.DataFrame, missing: str, source: Source | None = None
) -> tuple[pl.DataFrame, LeftOut]:
    """Return the rows that have item, annotator and label, and what the others were.

    Empty rows are left out, others on request: an incomplete row is an error unless `missing` is
    `drop`.
    """
    whole, left_out = without_empty(frame.select(list(NEEDED)), source)
    if whole.height < frame.height:
        frame = frame.filter(~pl.all_horizontal(pl.col(role).is_null() for role in NEEDED))
    lacks = frame.select(_is_missing(role, frame.schema[role]) for role in NEEDED)
    if missing == "drop" and frame.schema["label"] == pl.String:
        lacks = lacks.with_columns(lacks["label"] | is_no_label(frame["label"]))
    gaps = lacks.select(pl.any_horizontal(pl.all()).alias("gap"))["gap"]
    if not gaps.any():
        return frame, left_out
    if missing == "drop":
        return frame.filter(~gaps), left_out + _incomplete(frame.filter(gaps), lacks.filter(gaps))
    row, count = int(gaps.arg_true()[0]), int(gaps.sum())
    role = next(role for role in NEEDED if lacks[role][row])
    name = source.name if source else "table"
    ragged = ragged_line(source) if source and source.format in ("csv", "tsv") else None
    if ragged is not None:
        raise in_lines(DataError(ragged, where=name, rows=count))
    message, remedy = f"{line_of_row(source, row)}: no {role}", "leaves such rows out"
    raise in_lines(DataError(message, where=name, rows=count, remedy=remedy, missing="drop"))


def _incomplete(rows: pl.DataFrame, lacks: pl.DataFrame) -> LeftOut:
    """Return what rows without a label, an item or an annotator were."""
    label = names_of(rows["label"])
    word = pl.concat_str(pl.lit("'"), pl.lit(label), pl.lit("'"))
    reason = (
        pl.when(pl.lit(label).is_null() & pl.col("label")).then(pl.lit("without a label"))
        .when(pl.col("label")).then(word)
        .when(pl.col("item")).then(pl.lit("without an item"))
        .otherwise(pl.lit("without an annotator"))
    )  # fmt: skip
    count = Counter(lacks.select(reason.alias("reason"))["reason"].to_list())
    names = {
        role: tuple(names_of(rows[role]).drop_nulls().unique(maintain_order=True).to_list())
        for role in ("item", "annotator")
    }
    return LeftOut(dict(count.most_common()), names["item"], names["annotator"])


def repeated(count: int) -> LeftOut:
    """Return so many rows of which another one was kept."""
    return LeftOut({"repeated": count} if count else {})


def one_label_each(frame: pl.DataFrame, duplicates: str, name: str) -> pl.DataFrame:
    """Return one row for every item and annotator, the first or the last; or refuse several."""
    pair = ["item", "annotator"]
    if duplicates == "error":
        duplicated = frame.filter(frame.select(pair).is_duplicated())
        if duplicated.height:
            item, annotator = (text(duplicated[role][0]) for role in pair)
            raise labelled_again(item, annotator, name)
        return frame
    keep: Any = duplicates
    return frame.unique(pair, keep=keep, maintain_order=True)


def is_no_label(labels: pl.Series) -> pl.Series:
    """Return where a label is a word for "no label"."""
    return labels.str.to_lowercase().is_in(NO_LABEL).fill_null(False)


def _is_missing(role: str, kind: pl.DataType) -> pl.Expr:
    column, missing = pl.col(role), pl.col(role).is_null()
    if kind == pl.String:
        missing |= column == ""
    elif kind.is_float():
        missing |= column.is_nan()
    return missing.fill_null(True)


def _declared(label: Codes, used_names: Names, names: Names, source: str) -> tuple[Codes, Names]:
    """Return codes and names with classes as declared."""
    positions = {name: position for position, name in enumerate(names.tolist())}
    for name in used_names.tolist():
        if name not in positions:
            message = f"label {name!r} is not among the classes {', '.join(positions)}"
            raise DataError(message, where=source)
    table = np.array(
        [positions[name] for name in used_names.tolist()], dtype=smallest_dtype(len(names))
    )
    return (table[label] if len(used_names) else label), names


def code_columns(frame: pl.DataFrame) -> dict[str, tuple[Codes, Names]]:
    """Return codes and names, in natural order, of every column."""
    # One column often takes much longer than the others; more at once would need more memory.
    with ThreadPoolExecutor(2) as pool:
        columns = pool.map(
            lambda column: (code_texts if column.dtype == pl.String else _code_values)(column),
            frame.get_columns(),
        )
        return dict(zip(frame.columns, columns, strict=True))


def _code_values(column: pl.Series) -> tuple[Codes, Names]:
    """Return codes and names of a column that is not text."""
    if isinstance(column.dtype, pl.Enum):
        names = as_names(column.dtype.categories.to_list())
        return column.to_physical().to_numpy().astype(smallest_dtype(len(names))), names
    if column.dtype.is_temporal():
        return code_columns(names_of(column).alias(column.name).to_frame())[column.name]
    distinct = column.unique()
    codes, names = code(distinct.to_list())
    keys = pl.DataFrame({column.name: distinct, "code": codes.astype(np.uint32)})
    joined = column.to_frame().join(keys, on=column.name, how="left", maintain_order="left")
    return joined["code"].to_numpy().astype(codes.dtype), names


def as_array(column: pl.Series) -> np.ndarray[Any, Any]:
    """Return a column as an array: texts as numbers or times where all of them read so."""
    if column.dtype in (pl.Int128, pl.UInt128):  # NumPy has no such integers
        return column.cast(pl.Float64).to_numpy()
    if column.dtype != pl.String:
        return column.to_numpy()
    for kind in (pl.Int64, pl.Float64, pl.Datetime):
        try:
            if kind is not pl.Datetime:
                return column.cast(kind).to_numpy()
            written = as_texts_of_times(column)
            if written.null_count() == column.null_count():
                return written.str.to_datetime().to_numpy()
        except pl.exceptions.PolarsError:
            continue
    return as_names(column.fill_null("").to_list())


def numbers_from(annotations: Annotations, source: Any = None) -> Numbers:
    """Return annotations whose classes are numbers as numbers; errors name the file they are in."""
    names = annotations.classes.tolist()
    wrong = [
        code
        for code, name in enumerate(names)
        if not (re.match(NUMBER, name) and math.isfinite(float(name)))
    ]
    if wrong:
        where, line, label = "", "", names[wrong[0]]
        if isinstance(source, (str, Path)) and Path(source).is_file():
            where = str(source)
            with suppress(DataError):  # where the label has a column of another name
                opened = open_source(source)
                labels = read_roles(opened, {"label": NEEDED["label"]})["label"].cast(pl.String)
                row = int(labels.is_in([names[code] for code in wrong]).arg_true()[0])
                line, label = f"{line_of_row(opened, row)}: ", labels[row]
        n_more = int(np.isin(annotations.label, wrong).sum()) - 1
        more = f"; {n_more} more" if n_more else ""
        short = label if len(label) <= _LONGEST else f"{label[:_LONGEST]}…"
        message = f"{line}label {short!r} is not a number{more}"
        if re.match(NUMBER, names[wrong[0]]) is None:
            raise DataError(message, where=where)
        message = f"{line}label {short!r} is larger than any number here{more}"
        raise DataError(message, where=where, remedy="makes them classes", scale="nominal")
    value = np.array([float(name) for name in names])
    try:
        numbers = Numbers.from_codes(
            annotations.item,
            annotations.annotator,
            value[annotations.label],
            items=annotations.items,
            annotators=annotations.annotators,
            scale=annotations.scale,
            annotator_kinds=annotations.annotator_kinds,
            **annotations.columns,
        )
    except DataError as problem:
        raise problem.at(str(source)) if isinstance(source, (str, Path)) else problem from None
    return replace(numbers, left_out=annotations.left_out)


def recognises(head: Head) -> bool:
    """Return whether a table of three or four columns begins with data."""
    if head.shape != "table" or len(head.names) not in (3, 4) or len(head.lines) < 3:
        return False
    lines = [line for line in head.lines if any(line)]
    if any(len(line) != len(head.names) or "" in line[:3] for line in lines):
        return False
    pairs = [line[:2] for line in lines]
    return not has_header(lines) and len({*pairs}) > 0.9 * len(pairs)


def has_header(lines: Sequence[tuple[str, ...]]) -> bool:
    """Return whether the first line names columns rather than being one row of data.

    Data repeat: in two columns at least, the first value occurs again below, or all are numbers.
    """
    header, *below = lines or [()]
    below = [line for line in below if len(line) == len(header)]
    if not below or any(map(is_known, header)):
        return True
    alike = 0
    for position, cell in enumerate(header):
        column = [line[position] for line in below]
        numbers = all(map(_is_number, column))
        if numbers and not _is_number(cell):
            return True
        alike += numbers or cell in column
    return alike < 2


def read(source: Source) -> Export:
    """Return the answers of a table without a header, its columns recognised by their content."""
    frame = read_unnamed(source)
    if frame.width not in (3, 4):
        message, example = f"{frame.width} columns and no header", ColumnOf(item=1, annotator=2)
        raise source.fail(message, remedy="say {},…", columns=example)
    positions = _positions(frame)
    columns = ", ".join(f"{role} {position}" for role, position in positions.items())
    note = Note(
        f"no header: columns are taken as {columns}",
        remedy="overrides it",
        columns=ColumnOf(item="…", annotator="…"),
    )
    return _export(source, frame, positions, (note,))


def by_number(source: Source, columns: Mapping[str, str]) -> Export | None:
    """Return a table whose columns are given by number; nothing if they are given by name."""
    if not all(position.isdecimal() and len(position) < 6 for position in columns.values()):
        return None
    lines = [line for line in first_lines(source, 200) if any(line)]
    has_names = has_header(lines)
    if has_names and lines and {*columns.values()} & {*lines[0]}:
        return None
    frame = read_unnamed(source)
    for role, position in columns.items():
        if not 1 <= int(position) <= frame.width:
            raise source.fail(f"no column {position} for {role}; there are {frame.width}")
    lacking = next((role for role in NEEDED if role not in columns), None)
    if lacking is not None:
        raise source.fail(f"columns are given by number, but not the {lacking}; add {lacking}=…")
    positions = {role: int(position) for role, position in columns.items()}
    if has_names:
        frame = without_headers(source, frame.slice(1), [name or "" for name in frame.row(0)])
    return _export(source, frame, positions)


def _export(
    source: Source, frame: pl.DataFrame, positions: Mapping[str, int], notes: tuple[str, ...] = ()
) -> Export:
    answers = pl.DataFrame(
        [
            without_spaces(frame[frame.columns[position - 1]]).alias(role)
            for role, position in positions.items()
        ]
    )
    answers, left_out = without_empty(answers, source)
    gold: dict[str, str] = {}
    if "gold" in positions:
        gold_rows = answers.filter(pl.col("gold").fill_null("") != "").unique(
            "item", maintain_order=True
        )
        gold = dict(zip(gold_rows["item"].to_list(), gold_rows["gold"].to_list(), strict=True))
        answers = answers.drop("gold")
    return Export({"label": Question(answers, gold=gold, left_out=left_out)}, notes=notes)


def without_spaces(column: pl.Series) -> pl.Series:
    """Return a column of numbers without the spaces beside them; names stay as they are."""
    plain = column.str.strip_chars()
    return plain if plain.str.contains(NUMBER).all() else column


def _positions(frame: pl.DataFrame) -> dict[str, int]:
    """Return role → number of the column."""
    first, second, _, *gold = frame.columns
    if gold:  # an item has one gold label, an annotator has several
        swapped = _determines(frame, second, gold[0]) or not _determines(frame, first, gold[0])
    else:
        swapped = _are_annotators(frame[first]) and not _are_annotators(frame[second])
    item, annotator = (2, 1) if swapped else (1, 2)
    return {"item": item, "annotator": annotator, "label": 3} | ({"gold": 4} if gold else {})


def _determines(frame: pl.DataFrame, key: str, gold: str) -> bool:
    return frame.select(key, gold).n_unique() == frame[key].n_unique()


def _are_annotators(names: pl.Series) -> bool:
    """Return whether all names are those of annotators: w12, worker_3, user-a."""
    starts = names.str.to_lowercase().str.extract(r"^([a-z]+)[ _\-]?\d*", 1)
    return bool(starts.is_in(_WORKERS).fill_null(False).all())


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


FORMAT = Format("headerless", recognises=recognises, read=read)
