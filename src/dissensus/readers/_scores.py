"""Scores of people, models and code, as tools that evaluate language models record them."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from ._answers import Collected, joined

UNSCORED = "scores without a value"
_PARTS = "scores whose values have parts in parts"


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
) -> None:
    """Add one score; what is no label is counted.

    The parts of an object are questions of their own, `question.part`; a list is several options.
    """
    if isinstance(value, dict):
        for name, part in value.items():
            if isinstance(part, (dict, list)):
                collected.left[_PARTS] += 1
            else:
                add_score(collected, f"{question}.{name}", scorer, item, part, time, **further)
        return
    label = label_of(value)
    if label is None:
        collected.left[_PARTS if isinstance(value, list) else UNSCORED] += 1
        return
    answers = collected[question]
    if isinstance(value, list):
        answers.kind = "multiple"
    answers.add_by(scorer.kind, scorer.name, item, label, time, **further)


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
