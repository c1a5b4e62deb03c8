"""crowd-kit's aggregators, under its module path."""

from __future__ import annotations

from . import base as base
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
from .image_segmentation import SegmentationEM, SegmentationMajorityVote, SegmentationRASA
from .multilabel import BinaryRelevance
from .pairwise import BradleyTerry, NoisyBradleyTerry
from .texts import ROVER, TextHRRASA, TextRASA

__all__ = [
    "GLAD",
    "HRRASA",
    "KOS",
    "MACE",
    "MMSR",
    "RASA",
    "ROVER",
    "BinaryRelevance",
    "BradleyTerry",
    "ClosestToAverage",
    "DawidSkene",
    "GoldMajorityVote",
    "MajorityVote",
    "NoisyBradleyTerry",
    "OneCoinDawidSkene",
    "SegmentationEM",
    "SegmentationMajorityVote",
    "SegmentationRASA",
    "TextHRRASA",
    "TextRASA",
    "Wawa",
    "ZeroBasedSkill",
]
