"""Parts of a report that differ by kind: sentences, actions, sections, charts and lists.

A part is declared once and registered for kinds, as verbs are; a report is what it is called with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..answers import KINDS
from ..dispatch import Verb, by_kind

if TYPE_CHECKING:
    from .report import Report

LABELS = ("classes", "numbers")
MARKS = ("spans", "boxes", "points")
OTHERS = tuple(KINDS)

Part = TypeVar("Part")


def part(declared: Callable[[Report], Part]) -> Verb[[Report], Part]:
    """Declare a part of a report; what it is for a kind is registered with `for_kind`."""
    return by_kind(read=_itself)(declared)


def _itself(report: Any) -> Any:
    return report
