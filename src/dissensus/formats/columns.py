"""Which column is which: the names that people and tools use for items, annotators and labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ..errors import DataError

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
# Words for "no label": gaps of a wide table, and with `--missing drop` of a long one. "None" is a
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


def no_label_note(labels: Sequence[str], outcome: str) -> tuple[str, ...]:
    """Return a note about labels that are words for "no label", if there are any.

    >>> no_label_note(["NA", "NA", "nan"], "left out")
    ("3 labels are left out: 'NA' (2), 'nan' (1)",)
    """
    counts = ", ".join(f"{name!r} ({count})" for name, count in Counter(labels).items())
    return (f"{len(labels)} labels are {outcome}: {counts}",) if counts else ()


def is_known(name: str) -> bool:
    """Return whether a column's name shows what it holds."""
    return plain_name(name) in _KNOWN


def find_columns(
    present: Sequence[str],
    roles: Mapping[str, Sequence[str]],
    given: Mapping[str, str] | None,
    source: str,
    optional: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Return role → column, as given or else by the known names of its role.

    >>> find_columns(["Task ID", "worker", "label", "x"], NEEDED, None, "a.csv")
    {'item': 'Task ID', 'annotator': 'worker', 'label': 'label'}
    """
    columns, long = dict(given or {}), roles is NEEDED  # a long table, which --columns is for
    for role, name in columns.items():
        if name not in present:
            raise DataError(f"{source}: no column {name!r} for {role}; there are {_list(present)}")
    times = Counter(present)
    free = {name: plain_name(name) for name in present if name not in columns.values()}
    for role in [role for role in roles if role not in columns]:
        named = [name for name in present if free.get(name) in roles[role]]
        if not named:
            remedy = f"say which: {_option(role, source)}" if long else f"call one of them {role}"
            raise DataError(f"{source}: no column for the {role} among {_list(present)}; {remedy}")
        if len(named) > 1 or times[named[0]] > 1:
            which = _option(role, source, named[0])
            remedy = f"say which: {which}" if long else "keep one of them"
            raise DataError(f"{source}: {_list(named)} could each be the {role}; {remedy}")
        columns[role] = named[0]
    for role, names in (optional or {}).items():
        named = [name for name in present if free.get(name) in names]
        if role not in columns and len(named) == 1 and named[0] not in columns.values():
            columns[role] = named[0]
    return columns


def _option(role: str, source: str, name: str = "…") -> str:
    """Return how a column is named: of a table in memory in Python, else as on the command line."""
    if source == IN_MEMORY:
        return f'read(table, columns={{"{role}": "{name}"}})'
    return f"--columns {role}={name}"


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
    shown = ", ".join(map(repr, cut))
    shown = shown if len(shown) <= 300 else f"{shown[:299]}…"
    return shown + (f" … ({len(names)} in all)" if len(names) > most else "")
