"""Scores of annotators and items, copying, and cleaning."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .annotators import AnnotatorScores, identify
    from .cleaning import Cleaned, clean
    from .copying import Copies, copies
    from .crowdlab import Crowdlab
    from .items import ItemScores, item_scores
    from .scores import SCORES, score
    from .spam import mutual_information, spam_interval, spam_score, trace

__all__ = [
    "SCORES",
    "AnnotatorScores",
    "Cleaned",
    "Copies",
    "Crowdlab",
    "ItemScores",
    "clean",
    "copies",
    "identify",
    "item_scores",
    "mutual_information",
    "score",
    "spam_interval",
    "spam_score",
    "trace",
]

# Imported on first use. The function `crowdlab` is in the module of the same name.
_HOMES = {
    "AnnotatorScores": "annotators",
    "Cleaned": "cleaning",
    "Copies": "copying",
    "Crowdlab": "crowdlab",
    "ItemScores": "items",
    "SCORES": "scores",
    "clean": "cleaning",
    "copies": "copying",
    "identify": "annotators",
    "item_scores": "items",
    "mutual_information": "spam",
    "score": "scores",
    "spam_interval": "spam",
    "spam_score": "spam",
    "trace": "spam",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
