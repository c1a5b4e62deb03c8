"""Which column is which: the names that people and tools use for items, annotators and labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ..errors import DataError

__all__ = [
    "CARRIED",
    "NEEDED",
    "TRUTH",
    "find_columns",
    "is_known",
    "parse_columns",
    "plain_name",
    "question_column",
]

NEEDED = {
    "item": [
        "item",
        "task",
        "question",
        "unit",
        "example",
        "instance",
        "sample",
        "document",
        "text_id",
        "item_id",
        "task_id",
        "question_id",
        "unit_id",
        "example_id",
        "instance_id",
        "sample_id",
        "document_id",
        "doc_id",
        "itemid",
        "taskid",
    ],
    "annotator": [
        "annotator",
        "worker",
        "performer",
        "rater",
        "user",
        "coder",
        "judge",
        "labeler",
        "labeller",
        "labeler_id",
        "assessor",
        "participant",
        "contributor",
        "annotator_id",
        "worker_id",
        "performer_id",
        "rater_id",
        "user_id",
        "coder_id",
        "judge_id",
        "assessor_id",
        "participant_id",
        "contributor_id",
        "annotatorid",
        "workerid",
        "userid",
    ],
    "label": [
        "label",
        "answer",
        "class",
        "category",
        "rating",
        "response",
        "value",
        "judgment",
        "judgement",
        "annotation",
        "choice",
        "given_label",
        "label_id",
        "answer_label",
        "vote",
    ],
}
CARRIED = {
    "time": ["time", "timestamp", "created_at", "submitted_at", "submit_time", "date", "datetime"],
    "duration": ["duration", "lead_time", "seconds", "work_time", "worktimeinseconds"],
    "confidence": ["confidence", "certainty", "stated_confidence"],
    "gold": ["gold", "is_gold", "golden", "ground_truth"],
    "split": ["split", "subset", "fold"],
}
TRUTH = {
    "item": NEEDED["item"],
    "label": [
        *[
            "truth",
            "true_label",
            "true_class",
            "gold",
            "gold_label",
            "gold_standard",
            "ground_truth",
            "expert",
        ],
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


def is_known(name: str) -> bool:
    """Return whether a column's name tells what it holds."""
    return plain_name(name) in _KNOWN


def question_column(present: Sequence[str], told: Mapping[str, str] | None) -> str | None:
    """Return the column that tells several questions apart; nothing where it names the item.

    >>> question_column(["item", "question", "worker", "label"], None)
    'question'
    >>> question_column(["question", "worker", "answer"], None)
    """
    if told and "question" in told:
        return told["question"]
    taken = set((told or {}).values())
    asked = [name for name in present if plain_name(name) in QUESTION and name not in taken]
    items = [name for name in present if plain_name(name) in NEEDED["item"] and name not in asked]
    has_item = bool(items) or bool(told and "item" in told)
    return asked[0] if len(asked) == 1 and has_item else None


def find_columns(
    present: Sequence[str],
    roles: Mapping[str, Sequence[str]],
    told: Mapping[str, str] | None,
    source: str,
    optional: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """Return role → column; what is not told must be clear from the names.

    >>> find_columns(["Task ID", "worker", "label", "x"], NEEDED, None, "a.csv")
    {'item': 'Task ID', 'annotator': 'worker', 'label': 'label'}
    """
    told = dict(told or {})
    for role, name in told.items():
        if name not in present:
            raise DataError(f"{source}: no column {name!r} for {role}; there are {_list(present)}")
    twice = {name for name, times in Counter(present).items() if times > 1}
    free = [name for name in present if name not in told.values()]
    found = dict(told)
    for role, names in roles.items():
        if role in found:
            continue
        candidates = [name for name in free if plain_name(name) in names]
        if len(candidates) == 1 and candidates[0] not in twice:
            found[role] = candidates[0]
        elif candidates:
            raise DataError(
                f"{source}: {_list(candidates)} could each be the {role}; "
                f"say which: --columns {role}={candidates[0]}"
            )
        else:
            raise DataError(
                f"{source}: no column for the {role} among {_list(present)}; "
                f"say which: --columns {role}=…"
            )
    for role, names in (optional or {}).items():
        candidates = [name for name in free if plain_name(name) in names]
        if role not in found and len(candidates) == 1 and candidates[0] not in found.values():
            found[role] = candidates[0]
    return found


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
