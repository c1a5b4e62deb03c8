"""Choosing one question of an export, and what its answers are: classes, or another kind."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..answers import Answers, kind_class
from ..answers.left_out import with_left_out
from ..errors import DataError, Note
from .format import Export, Kind, Question
from .options import ReadOptions
from .sources import Source

if TYPE_CHECKING:
    from .reading import Reading

SEVERAL = Note(
    "a label may have several options: read as sets",
    remedy="makes each label a class",
    kind="single",
)
_FIRST = ("single", "sets", "ordinal", "numeric")  # kinds of questions that are read first


def choose_question(
    opened: Source, name: str, export: Export, options: ReadOptions
) -> tuple[str | None, Question, tuple[str, ...]]:
    """Return the title of a question, the question, and notes about the others.

    Classes come first where neither a question nor a kind of other answers is asked for.
    """
    plain = export.questions.get("")  # of a long table, whose rows are lines of the file
    notes, question = export.notes, options.question
    if plain is None:
        question, content, unread = _one_of_several(opened, name, export, options)
        notes += unread
    elif question is None:
        content = plain
    else:
        raise one_question(opened, question)
    for faults in opened.faults:
        notes = (*faults.notes, *notes)
        content = replace(content, left_out=faults.left_out + content.left_out)
    return question, content, (*opened.notes, *notes)


def _one_of_several(
    opened: Source, name: str, export: Export, options: ReadOptions
) -> tuple[str, Question, tuple[str, ...]]:
    """Return the question that is asked for, or the only one that fits, and what is not read."""
    questions = {title: content for title, content in export.questions.items() if title}
    listed = {
        title: f"{title} ({content.answers.height} {_counted(content.kind)})"
        for title, content in questions.items()
    }
    if not questions:
        raise opened.fail(f"a {name} export without any answer to a question")
    kind = None if options.wants_classes else options.kind
    if options.question is not None:
        if options.question not in questions:
            message = f"no question {options.question!r}; there are {', '.join(listed.values())}"
            raise opened.fail(message)
        content = questions[options.question]
        if not (kind in (None, content.kind) or _may_be_read_as(content, kind)):
            raise opened.fail(f"{options.question!r} asks for {content.kind}, not {kind}")
        return options.question, content, ()
    fit = [title for title, content in questions.items() if kind in (None, content.kind)]
    if kind == "texts" and not fit:
        fit = [title for title, content in questions.items() if _may_be_read_as(content, kind)]
    if not fit:
        raise opened.fail(f"no {kind} in it; there are {', '.join(listed.values())}")
    candidates = [title for title in fit if questions[title].kind in _FIRST] or fit
    if len(candidates) > 1:
        message = f"several questions, {', '.join(listed[title] for title in candidates)}"
        raise opened.fail(message, remedy="choose with {}", question="NAME")
    title = candidates[0]
    unread = ", ".join(sentence for other, sentence in listed.items() if other != title)
    notes = (Note(f"not read: {unread}", remedy="reads one", question="NAME"),) if unread else ()
    return title, questions[title], notes


def one_question(opened: Source, question: str) -> DataError:
    """Return an error about a question that is asked for where there is only one."""
    remedy = f"{opened.name}: a table of one question, so {{}} cannot be chosen"
    return DataError(remedy=remedy, question=question)


def _counted(kind: Kind) -> str:
    return "labels" if kind in _FIRST else f"answers, {kind}"


def _may_be_read_as(question: Question, kind: str | None) -> bool:
    """Return whether a question of one class each can be read as another kind."""
    return question.kind == "single" and kind in ("sets", "texts")


def as_texts(question: Question) -> Question:
    """Return a question of classes as one of texts."""
    values = question.answers["label"].to_list()
    answers = question.answers.drop("label")
    return replace(question, answers=answers, kind="texts", classes=None, values=values)


def answers_of(question: Question) -> Answers:
    """Return the answers to a question.

    >>> import polars as pl
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


def as_sets(reading: Reading) -> Reading:
    """Return labels with several options, `a|b`, as sets."""
    from ..answers.sets import Sets, split_options

    annotations = reading.annotations
    options = [split_options(name) for name in annotations.classes.tolist()]
    answers = Sets.from_values(
        annotations.items[annotations.item],
        annotations.annotators[annotations.annotator],
        [options[code] for code in annotations.label.tolist()],
        items=annotations.items,
        annotators=annotations.annotators,
    )
    answers = replace(answers, left_out=annotations.left_out)
    return replace(reading, answers=answers, kind="sets", notes=(*reading.notes, SEVERAL))
