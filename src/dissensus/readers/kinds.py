"""Questions of an export whose answers are sets, rankings, marks, masks or texts, as `Answers`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..answers import KINDS, Answers, Points, kind_class
from ..answers.sets import split_options
from ._answers import NONE
from .exports import Question


def has_answers(question: Question) -> bool:
    """Return whether a question has answers of another kind than classes and numbers."""
    return question.kind == "multiple" or question.kind in KINDS


def answers_of(question: Question) -> Answers:
    """Return the answers to a question; several options at once are sets.

    >>> import polars as pl
    >>> rows = pl.DataFrame({"item": ["a", "b"], "annotator": ["x", "x"]})
    >>> answers_of(Question(rows, "spans", values=[[{"start": 0, "end": 2}], []]))
    <spans: 2 items, 1 annotators, 1 marks; 50 % of answers are empty>
    """
    table = question.answers
    item, annotator = table["item"].to_list(), table["annotator"].to_list()
    values: Any = question.values
    kind: str = question.kind
    if kind == "multiple":
        labels = ["" if label == NONE else label for label in table["label"].to_list()]
        kind, values = "sets", [split_options(label) for label in labels]
    answers = kind_class(kind).from_values(item, annotator, values)
    if isinstance(answers, Points) and question.sizes:
        blank = (np.nan, np.nan)
        size = [question.sizes.get(name, blank)[::-1] for name in answers.items.tolist()]
        answers = replace(answers, size=np.array(size, dtype=float).reshape(-1, 2))
    return answers
