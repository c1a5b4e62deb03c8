"""Questions of an export whose answers are sets, rankings, marks, masks or texts, as `Answers`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from ..answers import KINDS, Answers, kind_class
from ..answers.left_out import with_left_out
from .format import Question


def has_answers(question: Question) -> bool:
    """Return whether a question has answers of another kind than classes and numbers."""
    return question.kind in KINDS


def as_texts(question: Question) -> Question:
    """Return a question of classes as one of texts."""
    values = question.answers["label"].to_list()
    answers = question.answers.drop("label")
    return replace(question, answers=answers, kind="texts", classes=None, values=values)


@dataclass(frozen=True, eq=False)
class KindReading:
    """The answers to a question of an export, with the texts and notes that came with them.

    Attributes
    ----------
    answers
        The answers.
    format
        The tool: `label-studio`, `coco`, ….
    question, questions
        Which question was read, and how many answers every question has.
    gold
        Known answers, item → value.
    texts
        A table of item and text, if the export has one.
    notes
        What was left out or assumed, a sentence each.
    """

    answers: Answers
    format: str
    question: str
    questions: Mapping[str, int] = field(default_factory=dict)
    gold: Mapping[str, Any] = field(default_factory=dict)
    texts: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()


def answers_of(question: Question) -> Answers:
    """Return the answers to a question.

    >>> rows = pl.DataFrame({"item": ["a", "b"], "annotator": ["x", "x"]})
    >>> answers_of(Question(rows, "spans", values=[[{"start": 0, "end": 2}], []]))
    <spans: 2 items, 1 annotators, 1 marks; 50 % of answers are empty>
    """
    from ..answers.marks import Points  # where it is used, since most files hold classes

    table = question.answers
    item, annotator = table["item"].to_list(), table["annotator"].to_list()
    values = [[] if value is None else value for value in question.values]
    answers = kind_class(question.kind).from_values(item, annotator, values)
    if isinstance(answers, Points) and question.sizes:
        blank = (np.nan, np.nan)
        size = [question.sizes.get(name, blank)[::-1] for name in answers.items.tolist()]
        answers = replace(answers, size=np.array(size, dtype=float).reshape(-1, 2))
    return with_left_out(answers, question.left_out)
