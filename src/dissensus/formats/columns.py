"""Which column is which, and which kind of answers a table holds, by the names of its columns.

Of the layouts of answers, the first whose columns are all there is taken. A column of classes
beside them decides otherwise: then a text is what was labelled, `start` and `end` are times, and
`order` is the order in which items were shown. Marks may have labels, so they are recognised
beside a label where they look like marks: empty, several from one annotator, or different from one
annotator to the next.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from ..answers import KINDS
from ..answers.rankings import TIES
from ..errors import DataError, Note, OptionError

_ITEMS = ["item", "task", "question", "unit", "example", "instance", "sample", "document"]
_ANNOTATORS = [
    *("annotator", "worker", "rater", "user", "coder", "judge", "assessor", "participant"),
    "contributor",
]
NEEDED = {
    "item": [*_ITEMS, *(f"{name}_id" for name in _ITEMS), "text_id", "doc_id", "itemid", "taskid"],
    "annotator": [
        *_ANNOTATORS,
        *(f"{name}_id" for name in _ANNOTATORS),
        *("performer", "performer_id", "labeler", "labeller", "labeler_id"),
        *("annotatorid", "workerid", "userid"),
    ],
    "label": [
        *("label", "answer", "class", "category", "rating", "response", "value", "judgment"),
        *("judgement", "annotation", "choice", "given_label", "label_id", "answer_label", "vote"),
    ],
}
IN_MEMORY = "table"  # the name of tables in memory, for messages
# Words for "no label": gaps of a wide table, and with `missing="drop"` of a long one. "None" is a
# label as any other.
NO_LABEL = frozenset({"nan", "na", "n/a", "null", "<na>"})
CARRIED = {
    "time": ["time", "timestamp", "created_at", "submitted_at", "submit_time", "date", "datetime"],
    "duration": ["duration", "lead_time", "seconds", "work_time", "worktimeinseconds"],
    "confidence": ["confidence", "certainty", "stated_confidence"],
    "gold": ["gold", "is_gold", "golden", "ground_truth"],
    "split": ["split", "subset", "fold"],
    "kind": ["kind", "annotator_kind", "annotator_type"],
    "source": ["source", "source_type"],
    "order": ["order", "shown_first", "presentation_order"],  # of the two answers of a pair
}
TRUTH = {
    "item": NEEDED["item"],
    "label": [
        *("truth", "true_label", "true_class", "gold", "gold_label", "gold_standard"),
        *("ground_truth", "expert"),
        *NEEDED["label"],
    ],
}
QUESTION = ["question", "question_id", "question_name", "task_label"]
_KNOWN = {
    name for table in (NEEDED, CARRIED, TRUTH) for names in table.values() for name in names
} | {*QUESTION}
CLASSES = {"single": "auto", "ordinal": "ordinal", "numeric": "interval"}  # kind → scale
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


class ColumnOf(dict[str, Any]):
    """Columns by role, in messages: a mapping in Python, `item=photo` on the command line.

    >>> f"columns={ColumnOf(item='photo')!r}", f"--columns {ColumnOf(item='photo')}"
    ("columns={'item': 'photo'}", '--columns item=photo')
    """

    def __str__(self) -> str:
        return ",".join(f"{role}={name}" for role, name in self.items())


def parse_columns(text: str | None) -> dict[str, str]:
    """Read `item=…,annotator=…,label=…` as given on the command line.

    >>> parse_columns("item=photo,label=what is it")
    {'item': 'photo', 'label': 'what is it'}
    """
    pairs = [entry.partition("=") for entry in (text or "").split(",") if entry.strip()]
    for role, equals, name in pairs:
        if not (role.strip() and equals and name.strip()):
            raise DataError(f"cannot read columns {text!r}; write item=…,annotator=…,label=…")
    return {role.strip(): name.strip() for role, _, name in pairs}


def no_label_note(labels: Sequence[str], outcome: str, **instead: Any) -> tuple[str, ...]:
    """Return a note about labels that are words for "no label", if there are any.

    `instead` has keywords that stand for `{}` in the outcome.

    >>> no_label_note(["NA", "NA", "nan"], "left out")
    ("3 labels are left out: 'NA' (2), 'nan' (1)",)
    """
    counts = ", ".join(f"{name!r} ({count})" for name, count in Counter(labels).items())
    sentence = f"{len(labels)} labels are {outcome}: {counts}"
    return (Note("", remedy=sentence, **instead) if instead else sentence,) if counts else ()


def is_known(name: str) -> bool:
    """Return whether a column's name shows what it holds."""
    return plain_name(name) in _KNOWN


def find_columns(
    present: Sequence[str],
    roles: Mapping[str, Sequence[str]],
    explicit: Mapping[str, str] | None,
    source: str,
    optional: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Return role → column, as `explicit` says or else by the known names of its role.

    >>> find_columns(["Task ID", "worker", "label", "x"], NEEDED, None, "a.csv")
    {'item': 'Task ID', 'annotator': 'worker', 'label': 'label'}
    """
    columns, is_long = dict(explicit or {}), roles is NEEDED  # what `columns` of `read` is for
    for role, name in columns.items():
        if name not in present:
            message = f"no column {name!r} for {role}; there are {_list(present)}"
            raise DataError(message, where=source)
    times = Counter(present)
    free = {name: plain_name(name) for name in present if name not in columns.values()}
    for role in [role for role in roles if role not in columns]:
        candidates = [name for name in present if free.get(name) in roles[role]]
        if not candidates:
            message = f"no column for the {role} among {_list(present)}"
            if is_long:
                raise _unclear(message, source, {role: "…"})
            raise DataError(f"{message}; call one of them {role}", where=source)
        if len(candidates) > 1 or times[candidates[0]] > 1:
            message = f"{_list(candidates)} could each be the {role}"
            if is_long:
                raise _unclear(message, source, {role: candidates[0]})
            raise DataError(f"{message}; keep one of them", where=source)
        columns[role] = candidates[0]
    for role, names in (optional or {}).items():
        candidates = [name for name in present if free.get(name) in names]
        if role not in columns and len(candidates) == 1 and candidates[0] not in columns.values():
            columns[role] = candidates[0]
    return columns


def _unclear(message: str, source: str, columns: Mapping[str, str]) -> DataError:
    """Return an error about columns of a long table, whose roles can be said."""
    return DataError(message, where=source, remedy="say which: {}", columns=ColumnOf(columns))


def plain_name(name: str) -> str:
    """Return a column's name as the lists here have it.

    >>> plain_name(" Task-ID")
    'task_id'
    """
    return re.sub(r"[\s.\-]+", "_", name.strip()).casefold()


def _list(names: Sequence[str], most: int = 12) -> str:
    if not names:
        return "none"
    cut = [name if len(name) <= 40 else f"{name[:39]}…" for name in names[:most]]
    listed = ", ".join(map(repr, cut))
    listed = listed if len(listed) <= 300 else f"{listed[:299]}…"
    return listed + (f" … ({len(names)} in all)" if len(names) > most else "")


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
    present: Sequence[str], kind: str | None = None, explicit: Mapping[str, str] | None = None
) -> tuple[Layout, dict[str, str]] | None:
    """Return the first layout of these columns, of this kind if one is given, and its columns."""
    explicit = explicit or {}
    plain: dict[str, str] = {}
    for name in present:
        plain.setdefault(plain_name(name), name)
    layouts = [layout for layout in LAYOUTS if kind in (None, layout.kind)]
    if kind in _IN_LABEL:
        layouts.append(Layout(kind or "", {_IN_LABEL[kind or ""]: ["label", *NEEDED["label"]]}))
    for layout in layouts:
        matches = {
            role: explicit.get(role) or next((plain[n] for n in names if n in plain), None)
            for role, names in layout.roles.items()
        }
        columns = {role: name for role, name in matches.items() if name is not None}
        if len(columns) == len(matches):
            return layout, columns
    return None


def lists_labels(lists: Iterable[str], present: Sequence[str], explicit: Mapping[str, str]) -> bool:
    """Return whether columns of lists are the labels of a long table: several options at once."""
    labels = [name for name in lists if explicit.get("label", name) == name]
    named = any(name in explicit.values() or plain_name(name) in NEEDED["label"] for name in labels)
    return named and names_people(present, explicit)


def names_people(present: Sequence[str], explicit: Mapping[str, str]) -> bool:
    """Return whether a table has columns of items and annotators."""
    plain = {plain_name(name) for name in present}
    return all(
        role in explicit or not plain.isdisjoint(NEEDED[role]) for role in ("item", "annotator")
    )


def column_of_labels(present: Sequence[str]) -> dict[str, str] | None:
    """Return the column of labels of a table that has them in one of several options."""
    lists = [name for name in present if plain_name(name) == "labels"]
    has_labels = any(plain_name(name) in NEEDED["label"] for name in present)
    return {"label": lists[0]} if lists and not has_labels else None


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
    has_several = bool(rows.select("\0item", "\0annotator").is_duplicated().any())
    if empty.any() or has_several:
        return True
    if kind == "spans":
        coincide = rows.select("\0item", *names).is_duplicated()
        return float(coincide.mean() or 0.0) >= _COINCIDE  # type: ignore[arg-type]
    constant = rows.group_by("\0item").agg(pl.col(names).n_unique()).select(names)
    return bool((constant > 1).select(pl.any_horizontal(pl.all())).to_series().any())


def _column(frame: pl.DataFrame, role: str) -> str | None:
    return next((name for name in frame.columns if plain_name(name) in NEEDED[role]), None)


def _are_runs(column: pl.Series) -> bool:
    if column.dtype != pl.String:
        return isinstance(column.dtype, pl.List)
    texts = column.drop_nulls()
    runs = texts.str.contains(r"^\s*\[?\s*\d+(?:[\s,]+\d+)*\s*\]?\s*$")
    return len(texts) > 0 and bool((runs & texts.str.contains(r"\d[\s,]+\d")).any() and runs.all())


def _are_lists(column: pl.Series) -> bool:
    if column.dtype != pl.String:
        return isinstance(column.dtype, pl.List)
    return bool(column.drop_nulls().str.contains(r"[|;]|^\s*\[").any())


def _are_winners(left: pl.Series, right: pl.Series, winner: pl.Series) -> bool:
    """Return whether most winners are one of both sides, or a tie."""
    left, right, winner = (column.cast(pl.String) for column in (left, right, winner))
    is_word = winner.str.to_lowercase().is_in(["left", "right", *TIES])
    fits = is_word | (winner == left) | (winner == right)
    share = fits.filter(winner.is_not_null()).mean()
    return share is not None and float(share) > 0.5  # type: ignore[arg-type]
