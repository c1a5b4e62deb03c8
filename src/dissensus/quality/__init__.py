"""Scores of annotators and items, copying, and cleaning."""

from __future__ import annotations

from .annotators import AnnotatorScores, identify
from .answers import AnswerScores
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
    "item_scores",
    "mutual_information",
    "score",
    "spam_interval",
    "spam_score",
    "trace",
]
