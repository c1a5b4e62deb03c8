"""Scores of annotators and items, copying, and cleaning."""

from __future__ import annotations

from typing import Any, overload

from ..answers import Answers
from .annotators import AnnotatorScores, identify_on_labels
from .answers import AnswerScores, identify_on_answers
from .camps import Camps, camps
from .cleaning import Cleaned, clean
from .copying import Copies, copies
from .correlation import mutual_information, spam_interval, spam_score, trace
from .crowdlab import Crowdlab
from .group_differences import GroupDifferences, group_differences
from .items import ItemScores, item_scores
from .scores import SCORES, score

__all__ = [
    "SCORES",
    "AnnotatorScores",
    "AnswerScores",
    "Camps",
    "Cleaned",
    "Copies",
    "Crowdlab",
    "GroupDifferences",
    "ItemScores",
    "camps",
    "clean",
    "copies",
    "group_differences",
    "identify",
    "identify_on_answers",
    "identify_on_labels",
    "item_scores",
    "mutual_information",
    "score",
    "spam_interval",
    "spam_score",
    "trace",
]


@overload
def identify(annotations: Answers, result: Any = ..., **settings: Any) -> AnswerScores: ...


@overload
def identify(annotations: Any, result: Any = ..., **settings: Any) -> AnnotatorScores: ...


def identify(
    annotations: Any, result: Any = None, **settings: Any
) -> AnnotatorScores | AnswerScores:
    """Score every annotator against the others.

    Answers of other kinds than classes and numbers go to `identify_on_answers`, everything else to
    `identify_on_labels`; both take `gold`, `confidence`, `seed` and `progress`.
    """
    if isinstance(annotations, Answers):
        return identify_on_answers(annotations, result, **settings)
    return identify_on_labels(annotations, result, **settings)
