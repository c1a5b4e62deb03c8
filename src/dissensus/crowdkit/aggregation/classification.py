"""Labels from votes and from models, under crowd-kit's module path."""

from __future__ import annotations

from .models import GLAD, KOS, MACE, MMSR, DawidSkene, OneCoinDawidSkene
from .votes import GoldMajorityVote, MajorityVote, Wawa, ZeroBasedSkill

__all__ = [
    "GLAD",
    "KOS",
    "MACE",
    "MMSR",
    "DawidSkene",
    "GoldMajorityVote",
    "MajorityVote",
    "OneCoinDawidSkene",
    "Wawa",
    "ZeroBasedSkill",
]
