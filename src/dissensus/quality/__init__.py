"""Scores of annotators and items, copying, and cleaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..answers import KINDS
from ..dispatch import by_kind
from ..formats.coerce import as_answers
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


@by_kind(read=as_answers)
def identify(
    answers: Any,
    result: Any = None,
    *,
    scale: str | None = None,
    method: str = "auto",
    gold: Any = None,
    models: bool = False,
    communities: int = 0,
    copying: bool = True,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Score every annotator against the others.

    `scale`, `models`, `communities` and `copying` are for classes and numbers, see
    `identify_on_labels`; `method` is for other kinds, see `identify_on_answers`.
    """
    raise NotImplementedError


identify.for_kind("classes", "numbers")(identify_on_labels)
identify.for_kind(*KINDS)(identify_on_answers)
