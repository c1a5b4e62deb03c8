"""crowd-kit's aggregators, under its module path.

The classes for comparisons, masks and ROVER are not here: those answers have methods of their own.
"""

from __future__ import annotations

from typing import NoReturn

from . import base
from .classification import (
    GLAD,
    KOS,
    MACE,
    MMSR,
    DawidSkene,
    GoldMajorityVote,
    MajorityVote,
    OneCoinDawidSkene,
    Wawa,
    ZeroBasedSkill,
)
from .embeddings import HRRASA, RASA, ClosestToAverage
from .multilabel import BinaryRelevance
from .texts import TextHRRASA, TextRASA

__all__ = [
    "GLAD",
    "HRRASA",
    "KOS",
    "MACE",
    "MMSR",
    "RASA",
    "BinaryRelevance",
    "ClosestToAverage",
    "DawidSkene",
    "GoldMajorityVote",
    "MajorityVote",
    "OneCoinDawidSkene",
    "TextHRRASA",
    "TextRASA",
    "Wawa",
    "ZeroBasedSkill",
    "base",
]

_ELSEWHERE = {
    "BradleyTerry": "comparisons",
    "NoisyBradleyTerry": "comparisons",
    "ROVER": "texts",
    "SegmentationEM": "masks",
    "SegmentationMajorityVote": "masks",
    "SegmentationRASA": "masks",
}


def __getattr__(name: str) -> NoReturn:
    """Say where to go for what is not here."""
    if name in _ELSEWHERE:
        raise ImportError(f"no {name} here; dissensus.aggregate takes {_ELSEWHERE[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
