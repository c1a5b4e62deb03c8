"""Scores of people, models and code, as tools that evaluate language models record them."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from ..collecting import Collected, joined

_UNSCORED = "without a value"
_PARTS = "with parts in parts"


class Scorer(NamedTuple):
    """Who gave a score; the kind is unknown where the tool does not record it."""

    kind: Literal["person", "model", "code"] | None
    name: str


def add_score(
    collected: Collected,
    question: str,
    scorer: Scorer,
    item: str,
    value: Any,
    time: Any = None,
    **further: Any,
) -> bool:
    """Add one score, and return whether none of it was left out; what is no label is counted.

    The parts of an object are questions of their own, `question.part`; a list is several options.
    """
    if isinstance(value, dict):
        whole = True
        for name, part in value.items():
            if isinstance(part, (dict, list)):
                collected.leave_out(_PARTS, item, question=f"{question}.{name}")
                whole = False
            else:
                whole &= add_score(
                    collected, f"{question}.{name}", scorer, item, part, time, **further
                )
        return whole
    label = label_of(value)
    if label is None:
        reason = _PARTS if isinstance(value, list) else _UNSCORED
        person = scorer.name if scorer.kind == "person" else None
        collected.leave_out(reason, item, person, question=question)
        return False
    answers = collected[question]
    if isinstance(value, list):
        answers.kind = "multiple"
    answers.add_by(scorer.kind, scorer.name, item, label, time, **further)
    return True


def label_of(value: Any) -> str | None:
    """Return a value as a label; nothing where it cannot be one.

    >>> label_of(4.0), label_of(True), label_of(["b", "a"]), label_of(float("nan"))
    ('4', 'true', 'a|b', None)
    """
    if value is None or value == "" or isinstance(value, dict):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        flat = all(isinstance(one, (str, int, float)) for one in value)
        return joined(value) if flat else None
    return joined([value])
