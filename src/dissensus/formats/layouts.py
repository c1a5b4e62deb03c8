"""Which kind of answers a table holds, by its columns.

The first layout whose columns are all there is taken. A column of classes beside them decides
otherwise: then a text is what was labelled, `start` and `end` are times, and `order` is the order
in which items were shown. Marks may have labels, so they are recognised beside a label where they
look like marks: empty, several from one annotator, or different from one annotator to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from ..answers import KINDS
from ..answers.rankings import TIES
from ..errors import OptionError
from .columns import NEEDED, plain_name

CLASSES = {"single": "nominal", "ordinal": "ordinal", "numeric": "interval"}  # kind → scale
_OTHER_NAMES = {"classes": "single", "class": "single", "numbers": "numeric", "number": "numeric"}
_OTHER_NAMES |= {"comparisons": "rankings", "comparison": "rankings", "boxes": "boxes"}
_OTHER_NAMES |= {kind.removesuffix("s"): kind for kind in KINDS} | {"box": "boxes"}
_LATEST = 10**8  # seconds since 1970 are larger than any position in a text
_COINCIDE = 0.2  # share of spans that another annotator has marked as well


class Layout(NamedTuple):
    """Columns that hold answers of a kind: role → names."""

    kind: str
    roles: Mapping[str, Sequence[str]]


LAYOUTS = (
    Layout("spans", {"start": ["start", "start_offset"], "end": ["end", "end_offset"]}),
    Layout("boxes", {"x": ["x"], "y": ["y"], "w": ["w", "width"], "h": ["h", "height"]}),
    Layout("boxes", {side: [side] for side in ("xmin", "ymin", "xmax", "ymax")}),
    Layout("boxes", {side: [side] for side in ("xtl", "ytl", "xbr", "ybr")}),
    Layout("points", {"x": ["x"], "y": ["y"]}),
    Layout("masks", {"counts": ["counts", "rle", "mask"]}),
    Layout(
        "rankings",
        {"left": ["left"], "right": ["right"], "winner": ["winner", "label", "preference"]},
    ),
    Layout("rankings", {"ranking": ["ranking", "order"]}),
    Layout("sets", {"labels": ["labels"]}),
    Layout("texts", {"text": ["text", "transcription"]}),
)
# Where the kind is given, its value may also be in the column of labels.
_IN_LABEL = {"rankings": "winner", "sets": "labels", "texts": "text", "masks": "counts"}


def as_kind(name: str | None) -> str | None:
    """Return a kind by any of its names; nothing for `auto`.

    >>> as_kind("text"), as_kind("comparisons"), as_kind("auto")
    ('texts', 'rankings', None)
    """
    plain = (name or "auto").strip().lower()
    plain = _OTHER_NAMES.get(plain, plain)
    if plain == "auto":
        return None
    if plain not in (*CLASSES, *KINDS):
        raise OptionError(f"no kind {name!r}; there are auto, {', '.join((*CLASSES, *KINDS))}")
    return plain


def find_layout(
    present: Sequence[str], kind: str | None = None, given: Mapping[str, str] | None = None
) -> tuple[Layout, dict[str, str]] | None:
    """Return the first layout of these columns, of this kind if one is given, and its columns."""
    given = given or {}
    plain: dict[str, str] = {}
    for name in present:
        plain.setdefault(plain_name(name), name)
    layouts = [one for one in LAYOUTS if kind in (None, one.kind)]
    if kind in _IN_LABEL:
        layouts.append(Layout(kind or "", {_IN_LABEL[kind or ""]: ["label", *NEEDED["label"]]}))
    for layout in layouts:
        found = {
            role: given.get(role) or next((plain[n] for n in names if n in plain), None)
            for role, names in layout.roles.items()
        }
        columns = {role: name for role, name in found.items() if name is not None}
        if len(columns) == len(found):
            return layout, columns
    return None


def is_of_kind(frame: pl.DataFrame, layout: Layout, columns: Mapping[str, str]) -> bool:
    """Return whether the columns of a layout hold answers of its kind."""
    value = {role: frame[name] for role, name in columns.items()}
    classes = [n for n in frame.columns if plain_name(n) in NEEDED["label"]]
    beside = [name for name in classes if name not in columns.values()]
    match layout.kind:
        case "masks":
            return _are_runs(value["counts"])
        case "sets":
            return not beside and _are_lists(value["labels"])
        case "texts":
            return not beside
        case "rankings" if "winner" in value:
            sure = columns["winner"] not in classes
            return sure or _are_winners(value["left"], value["right"], value["winner"])
        case "rankings":
            return not beside
    if not beside:
        return True
    return _are_marks(frame, layout.kind, [columns[role] for role in layout.roles])


def _are_marks(frame: pl.DataFrame, kind: str, names: Sequence[str]) -> bool:
    """Return whether columns beside a label are marks, and not times or properties of items."""
    pair = [_column(frame, role) for role in ("item", "annotator")]
    position = frame.select(
        pl.col(name).cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False).alias(name)
        for name in names
    )
    blank = frame.select(pl.all_horizontal(pl.col(n).cast(pl.String).is_null() for n in names))
    empty = blank.to_series()
    read = position.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
    if not (read | empty).all() or not read.any():
        return False
    if kind == "spans":
        start, end = position[names[0]].filter(read), position[names[1]].filter(read)
        whole = (start.floor() == start).all() and (end.floor() == end).all()
        if not whole or not (end < _LATEST).all() or not (start <= end).all():
            return False
    if None in pair:
        return True  # a truth or a consensus, which has no annotators
    item, annotator = (frame[str(name)] for name in pair)
    rows = position.with_columns(item.alias("\0item"), annotator.alias("\0annotator")).filter(read)
    several = bool(rows.select("\0item", "\0annotator").is_duplicated().any())
    if empty.any() or several:
        return True
    if kind == "spans":
        same = rows.select("\0item", *names).is_duplicated()
        return float(same.mean() or 0.0) >= _COINCIDE  # type: ignore[arg-type]
    constant = rows.group_by("\0item").agg(pl.col(names).n_unique()).select(names)
    return bool((constant > 1).select(pl.any_horizontal(pl.all())).to_series().any())


def _column(frame: pl.DataFrame, role: str) -> str | None:
    return next((name for name in frame.columns if plain_name(name) in NEEDED[role]), None)


def _are_runs(column: pl.Series) -> bool:
    if column.dtype != pl.String:
        return isinstance(column.dtype, pl.List)
    known = column.drop_nulls()
    runs = known.str.contains(r"^\s*\[?\s*\d+(?:[\s,]+\d+)*\s*\]?\s*$")
    return len(known) > 0 and bool((runs & known.str.contains(r"\d[\s,]+\d")).any() and runs.all())


def _are_lists(column: pl.Series) -> bool:
    if column.dtype != pl.String:
        return isinstance(column.dtype, pl.List)
    return bool(column.drop_nulls().str.contains(r"[|;]|^\s*\[").any())


def _are_winners(left: pl.Series, right: pl.Series, winner: pl.Series) -> bool:
    """Return whether most winners are one of both sides, or a tie."""
    left, right, winner = (one.cast(pl.String) for one in (left, right, winner))
    known = winner.str.to_lowercase().is_in(["left", "right", *TIES])
    fits = known | (winner == left) | (winner == right)
    share = fits.filter(winner.is_not_null()).mean()
    return share is not None and float(share) > 0.5  # type: ignore[arg-type]
