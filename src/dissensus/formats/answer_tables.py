"""Long tables of answers: one row for every mark, or for every answer without marks.

A row whose value columns are empty is an empty answer. Errors name the line of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ..answers import Answers, kind_class
from ..answers.left_out import LeftOut, with_left_out
from ..answers.rankings import TIES, Rankings
from ..answers.sets import split_options
from ..base.arrays import Floats
from ..base.names import Names, as_names
from ..errors import DataError, Note
from .columns import NEEDED, Layout, find_columns, plain_name
from .frames import names_of
from .options import ReadOptions
from .sources import Source, open_source, ragged_line
from .spellings import Joined, join_columns
from .tables import blank_lines, line_of_row, read_columns

_LONGEST = 60  # characters of a label in a message
_LABEL = ["label", "class", "category", "type", "tag"]  # names of the label of a mark
_CORNERS = {"xmin": "x", "ymin": "y", "xtl": "x", "ytl": "y"}
_SIZE = {
    "height": ["height", "image_height", "original_height"],
    "width": ["width", "image_width", "original_width"],
}
_SIDES = (("left", "right"), ("1", "2"), ("a", "b"), ("first", "second"))
_ROW = re.compile(r"^row (\d+): ")
_WRITTEN = ("labels", "text", "left", "right", "winner")  # roles of names and texts
_UNASSIGNED = Note(
    "no answer is empty: who looked and marked nothing is unknown",
    remedy="{}, a table of item and annotator, supplies it",
    assigned="FILE",
)

Inputs = pl.DataFrame | None


def answers_from(
    frame: pl.DataFrame,
    layout: Layout,
    columns: Mapping[str, str],
    options: ReadOptions | None = None,
    *,
    source: Source | None = None,
    annotator: str | None = None,
) -> tuple[Answers, tuple[str, ...]]:
    """Return the answers of a long table, and notes.

    Parameters
    ----------
    frame, layout, columns
        The table, the layout of its values, and role → column.
    options
        As in `read`; of marks all rows of an item and annotator are one answer.
    source
        The file, for messages.
    annotator
        The annotator of a table that names none: a truth or a consensus.
    """
    options = options or ReadOptions()
    name = source.name if source else "table"
    _check_ragged(frame, source)
    named = options.columns or {}
    rows = _by_role(frame, layout, columns, named_columns=named, name=name, annotator=annotator)
    rows, left_out = _complete(rows, list(layout.roles), options.missing, source)
    notes: tuple[str, ...] = ()
    for faults in () if source is None else source.faults:
        left_out, notes = faults.left_out + left_out, faults.notes
    if options.spelling == "join":  # before any row counts as a repeated one
        joined = Joined()
        rows = join_columns(rows, joined)
        notes += joined.notes
    side = None if options.inputs is None else read_inputs(options.inputs)
    marks = layout.kind in ("spans", "boxes", "points")
    if options.duplicates != "count" and not marks:
        from .long_tables import one_label_each, repeated

        height = rows.height
        rows = one_label_each(rows, options.duplicates, name)
        left_out += repeated(height - rows.height)
    if options.assigned is not None:
        rows = _with_assigned(rows, options.assigned)
    elif marks and annotator is None and not rows.select(_blank(layout.roles)).to_series().any():
        notes += (_UNASSIGNED,)
    build = _BUILDERS[layout.kind]
    with _named_rows(source, rows["row"].to_numpy()):
        answers = with_left_out(build(rows, side), left_out)
    return answers, (*notes, *answers.left_out.sentences)


def _by_role(
    frame: pl.DataFrame,
    layout: Layout,
    columns: Mapping[str, str],
    *,
    named_columns: Mapping[str, str],
    name: str,
    annotator: str | None,
) -> pl.DataFrame:
    """Return the columns by role: item, annotator, values, and the label of marks."""
    value_columns = set(columns.values())
    free_columns = [column for column in frame.columns if column not in value_columns]
    known_names = {role: NEEDED[role] for role in ("item", "annotator")}
    if annotator is not None:
        del known_names["annotator"]
    role_columns = {role: column for role, column in named_columns.items() if role in known_names}
    column_of = find_columns(free_columns, known_names, role_columns, name)
    optional = {"label": _LABEL} | (_SIZE if layout.kind in ("masks", "points") else {})
    for role, names in optional.items():
        if role in named_columns:
            column_of[role] = named_columns[role]
            continue
        free = [
            column
            for column in free_columns
            if plain_name(column) in names and column not in column_of.values()
        ]
        if free and role not in columns:
            column_of[role] = free[0]
    series = [names_of(frame[column_of[role]]).alias(role) for role in known_names]
    if annotator is not None:
        series.insert(1, pl.Series("annotator", [annotator] * frame.height, dtype=pl.String))
    if "label" in column_of and layout.kind in ("spans", "boxes", "points"):
        series.append(names_of(frame[column_of["label"]]).alias("label"))
    series += [frame[column_of[role]].alias(role) for role in _SIZE if role in column_of]
    series += [_as_text(frame[column], role).alias(role) for role, column in columns.items()]
    return pl.DataFrame(series).with_row_index("row")


def _as_text(column: pl.Series, role: str) -> pl.Series:
    """Return a column of values: empty texts and blank positions are null, lists stay lists."""
    if column.dtype != pl.String:
        return column
    written = column if role in _WRITTEN else column.str.strip_chars()
    return column.set(written == "", None)


def _blank(roles: Mapping[str, Any] | Sequence[str]) -> pl.Expr:
    return pl.all_horizontal(pl.col(role).is_null() for role in roles)


def _complete(
    rows: pl.DataFrame, values: Sequence[str], missing: str, source: Source | None
) -> tuple[pl.DataFrame, LeftOut]:
    """Return the rows with item and annotator; others are an error, or left out on request."""
    height = rows.height
    rows = rows.filter(~_blank(["item", "annotator", *values]))
    empty = height - rows.height
    empty -= blank_lines(source, empty) if empty else 0
    left_out = LeftOut({"empty": empty} if empty else {})
    lacks = rows.select(pl.any_horizontal(pl.col("item", "annotator").is_null())).to_series()
    if not lacks.any():
        return rows, left_out
    if missing == "drop":
        dropped = rows.filter(lacks)
        no_item = dropped["item"].null_count()
        counts = {"without an item": no_item, "without an annotator": dropped.height - no_item}
        reasons = {reason: count for reason, count in counts.items() if count}
        names = (
            tuple(dropped[role].drop_nulls().unique(maintain_order=True).to_list())
            for role in ("item", "annotator")
        )
        return rows.filter(~lacks), left_out + LeftOut(reasons, *names)
    row = rows.filter(lacks).row(0, named=True)
    role = "item" if row["item"] is None else "annotator"
    where = line_of_row(source, row["row"])
    raise DataError(
        f"{where}: no {role}",
        where=source.name if source else "table",
        remedy="leaves such rows out",
        missing="drop",
    )


def _check_ragged(frame: pl.DataFrame, source: Source | None) -> None:
    """Refuse lines that were cut: they would look like empty answers."""
    if source is None or source.format not in ("csv", "tsv") or frame.width == 0:
        return
    if frame[frame.columns[-1]].null_count() and (ragged := ragged_line(source)):
        raise source.fail(ragged)


def _with_assigned(rows: pl.DataFrame, path: str | Path) -> pl.DataFrame:
    """Return the rows, and an empty one for everybody who was assigned an item without any."""
    source = open_source(path)
    frame = read_columns(source, None)
    known_names = {role: NEEDED[role] for role in ("item", "annotator")}
    roles = find_columns(frame.columns, known_names, None, source.name)
    pairs = pl.DataFrame({role: names_of(frame[name]) for role, name in roles.items()})
    new = pairs.drop_nulls().unique(maintain_order=True).join(
        rows.select("item", "annotator"), on=["item", "annotator"], how="anti"
    )  # fmt: skip
    return pl.concat([rows, new], how="diagonal_relaxed").with_columns(pl.col("row").fill_null(0))


@contextmanager
def _named_rows(source: Source | None, row: Any) -> Iterator[None]:
    """Name the file and the line in errors about a row."""
    try:
        yield
    except DataError as problem:
        message = problem.message
        if (match := _ROW.match(message.what)) and int(match[1]) <= len(row):
            where = line_of_row(source, int(row[int(match[1]) - 1]))
            sentence = f"{where}: {message.what[match.end() :]}"
            problem.message = replace(message, what=sentence)
        raise (problem.at("table") if source is None else source.blame(problem)) from None


def read_inputs(path: str | Path) -> pl.DataFrame:
    """Return a table about items, with their names in the column `item`."""
    source = open_source(path)
    frame = read_columns(source, None)
    names = [*NEEDED["item"], "id"]
    column = find_columns(frame.columns, {"item": names}, None, source.name)["item"]
    renamed = names_of(frame[column]).alias("item")
    attributes = [name for name in frame.columns if name not in (column, "item")]
    return pl.DataFrame([renamed, *(frame[name] for name in attributes)]).unique(
        "item", keep="first", maintain_order=True
    )


def _numbers(rows: pl.DataFrame, role: str, *, whole: bool = False) -> Floats:
    """Return a column as numbers, NaN where it is empty."""
    column = rows[role]
    if column.dtype == pl.String:
        column = column.str.strip_chars()
    number = column.cast(pl.Float64, strict=False)
    wrong = number.is_null() & column.is_not_null()
    if whole:
        wrong |= (number.is_not_nan() & (number != number.floor())).fill_null(False)
    if wrong.any():
        row = int(wrong.arg_true()[0])
        expected = "a whole number" if whole else "a number"
        raise DataError(f"row {row + 1}: {role} is {column[row]!r}, not {expected}")
    return number.fill_null(float("nan")).to_numpy()


def _pairs(rows: pl.DataFrame) -> tuple[Names, Names]:
    """Return items and annotators."""
    return as_names(rows["item"].to_list()), as_names(rows["annotator"].to_list())


def _marks(rows: pl.DataFrame, kind: str, place: dict[str, Floats], **fields: Any) -> Answers:
    if "label" in rows.columns:
        blank = np.all([np.isnan(values) for values in place.values()], axis=0)
        stray = blank & rows["label"].is_not_null().to_numpy()
        if stray.any():
            row = int(stray.argmax())
            names = " and ".join(place)
            label = str(rows["label"][row])
            short = label if len(label) <= _LONGEST else f"{label[:_LONGEST]}…"
            raise DataError(f"row {row + 1}: the label {short!r} without {names}")
        fields["label"] = rows["label"].to_list()
    cls: Any = kind_class(kind)
    return cls.from_columns(*_pairs(rows), *place.values(), **fields)


def _spans(rows: pl.DataFrame, _: Inputs) -> Answers:
    place = {role: _numbers(rows, role, whole=True) for role in ("start", "end")}
    return _marks(rows, "spans", place)


def _boxes(rows: pl.DataFrame, _: Inputs) -> Answers:
    if "w" in rows.columns:
        return _marks(rows, "boxes", {role: _numbers(rows, role) for role in ("x", "y", "w", "h")})
    sides = [name for name in rows.columns if name[0] in "xy" and len(name) > 1]
    low_x, low_y, high_x, high_y = (_numbers(rows, side) for side in _in_order(sides))
    place = {"x": low_x, "y": low_y, "w": high_x - low_x, "h": high_y - low_y}
    return _marks(rows, "boxes", place)


def _in_order(sides: Sequence[str]) -> list[str]:
    low = sorted(side for side in sides if side in _CORNERS)
    high = sorted(side for side in sides if side not in _CORNERS)
    return [*low, *high]


def _points(rows: pl.DataFrame, inputs: Inputs) -> Answers:
    place = {role: _numbers(rows, role) for role in ("x", "y")}
    table = rows if set(_SIZE) <= set(rows.columns) else inputs
    sizes = {} if table is None else _sizes(table)
    size = {item: (width, height) for item, (height, width) in sizes.items()}
    return _marks(rows, "points", place, size=size)


def _masks(rows: pl.DataFrame, inputs: Inputs) -> Answers:
    table = rows if set(_SIZE) <= set(rows.columns) else inputs
    if table is None:
        message = "masks need the size of their images"
        raise DataError(message, remedy="{} with height and width gives it", inputs="FILE")
    counts = [_runs(value) for value in rows["counts"].to_list()]
    cls: Any = kind_class("masks")
    return cls.from_columns(*_pairs(rows), counts, size=_sizes(table))


def _runs(value: Any) -> Any:
    return value.strip("[] ").replace(",", " ") if isinstance(value, str) else value


def _sizes(table: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """Return height and width by item; empty cells are left out."""
    free_columns = [name for name in table.columns if name not in ("item", "annotator")]
    columns = find_columns(free_columns, _SIZE, None, "sizes of images")
    pair = [_numbers(table, columns[role], whole=True).tolist() for role in _SIZE]
    sizes: dict[str, tuple[int, int]] = {}
    for item, height, width in zip(table["item"].to_list(), *pair, strict=True):
        if item is None or height != height or width != width:
            continue
        size = int(height), int(width)
        if min(size) < 0:
            raise DataError(f"item {item!r} has the size {height:g} × {width:g}")
        if sizes.setdefault(item, size) != size:
            raise DataError(f"item {item!r} has images of several sizes")
    return sizes


def _rankings(rows: pl.DataFrame, inputs: Inputs) -> Answers:
    if "ranking" in rows.columns:
        values = [ranked(value) for value in rows["ranking"].to_list()]
        return Rankings.from_values(*_pairs(rows), values)
    if "left" in rows.columns:
        left, right = (names_of(rows[side]) for side in ("left", "right"))
        winner = names_of(rows["winner"])
    else:
        left, right, winner = _sides(rows, inputs)
    blank = winner.is_null()
    if not blank.any():
        sides = (as_names(side.to_list()) for side in (left, right, winner))
        return Rankings.from_comparisons(*_pairs(rows), *sides)
    has_side = left.is_not_null() | right.is_not_null()
    if "left" in rows.columns and (blank & has_side).any():
        row = int((blank & has_side).arg_true()[0])
        raise DataError(f"row {row + 1}: no winner; an empty answer has neither left nor right")
    comparisons = Rankings.from_comparisons(
        *_pairs(rows.filter(~blank)), *(as_names(side.filter(~blank).to_list()) for side in
        (left, right, winner)),
    )  # fmt: skip
    unanswered = rows.filter(blank)
    empty: list[Any] = [[]] * unanswered.height
    return comparisons.merge(
        Rankings.from_values(*_pairs(unanswered), empty, things=comparisons.things)
    )


def _sides(rows: pl.DataFrame, inputs: Inputs) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Return both sides of comparisons from a table about items, and which of them won."""
    remedy = "{} with the columns left and right says what was compared"
    if inputs is None:
        message = "comparisons without the columns left and right"
        raise DataError(message, remedy=remedy, inputs="FILE")
    for ends in _SIDES:
        pair = [[name for name in inputs.columns if plain_name(name).endswith(e)] for e in ends]
        matches = [
            (a, b) for a in pair[0] for b in pair[1] if a[: -len(ends[0])] == b[: -len(ends[1])]
        ]
        if matches:
            break
    else:
        message = "no two columns for the left and the right side"
        raise DataError(message, remedy=remedy, inputs="FILE")
    names = inputs.select("item", *(names_of(inputs[name]).alias(s) for name, s in
        zip(matches[0], ("left", "right"), strict=True)))  # fmt: skip
    joined = rows.select("item").join(names, on="item", how="left", maintain_order="left")
    if joined["left"].null_count():
        row = int(joined["left"].is_null().arg_true()[0])
        message = f"row {row + 1}: item {rows['item'][row]!r} has no two sides"
        raise DataError(message, remedy="{} has to name them", inputs="FILE")
    winner = names_of(rows["winner"])
    word = winner.str.to_lowercase()
    tie = word.is_in([*TIES, "s"])
    for side, end in zip(("left", "right"), ends, strict=True):
        hit = ~tie & (word.str.ends_with(end) & (word.str.len_chars() <= len(end) + 1))
        winner = winner.set(hit.fill_null(False), side)
    return joined["left"], joined["right"], winner.set((word == "s").fill_null(False), "tie")


def ranked(value: Any) -> list[Any]:
    """Return a ranking that is a list or a text, best first; tied things are a list.

    >>> ranked("b a c"), ranked("b > a = c"), ranked('["b c", "a"]'), ranked(None)
    (['b', 'a', 'c'], ['b', ['a', 'c']], ['b c', 'a'], [])
    """
    if (listed := _listed(value)) is not None:
        return listed
    if ">" in value or "=" in value:
        groups = [[name.strip() for name in group.split("=")] for group in value.split(">")]
        return [group if len(group) > 1 else group[0] for group in groups]
    mark = next((mark for mark in ("|", ";", ",") if mark in value), None)
    return [name.strip() for name in value.split(mark)]


def _listed(value: Any) -> list[Any] | None:
    """Return a value that is a list, or one in JSON; `None` for other texts."""
    if value is None:
        return []
    if not isinstance(value, str):
        return list(value)
    if not value.lstrip().startswith("["):
        return None
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        raise DataError(f"{value[:40]!r} is not a list in JSON") from None
    return content if isinstance(content, list) else [content]


def _sets(rows: pl.DataFrame, _: Inputs) -> Answers:
    cells = rows["labels"].to_list()
    texts = [value for value in cells if isinstance(value, str)]
    mark = "|" if any("|" in value for value in texts) else ";"
    spaced = (f" {mark} ", f"{mark} ")  # spaces beside every mark belong to it
    uses = {between: all(v.count(mark) == v.count(between) for v in texts) for between in spaced}
    between = next((spacing for spacing in spaced if uses[spacing]), mark)
    cls: Any = kind_class("sets")
    return cls.from_values(*_pairs(rows), [_options(value, between) for value in cells])


def _options(value: Any, between: str) -> list[Any]:
    if (listed := _listed(value)) is not None:
        return listed
    options = split_options(value) if between == "|" else value.split(between)
    return [option for option in options if option]


def _texts(rows: pl.DataFrame, _: Inputs) -> Answers:
    values = ["" if value is None else str(value) for value in rows["text"].to_list()]
    return kind_class("texts").from_values(*_pairs(rows), values)


_BUILDERS: dict[str, Callable[[pl.DataFrame, Inputs], Answers]] = {
    "spans": _spans,
    "boxes": _boxes,
    "points": _points,
    "masks": _masks,
    "rankings": _rankings,
    "sets": _sets,
    "texts": _texts,
}
