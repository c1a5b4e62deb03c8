"""The page of attention maps: items with all their annotators side by side.

Everything is there without scripts; a script lets readers choose an annotator, fade the colours,
and see how each differs from the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .embedding import fill


class MapCard(NamedTuple):
    """One annotator on one item."""

    annotator: str
    label: str  # predicted
    probability: float
    given: str  # the label they gave; empty if unknown
    map: str  # of an image: the heat map as a data URL
    difference: str  # of an image: more (red) and less (blue) attention than the mean
    strengths: list[float]  # of words and frames: from 0 to 1
    differences: list[float]  # the same for the difference: from −1 to 1


class MapItem(NamedTuple):
    """One item, with all its annotators."""

    name: str
    kind: str  # of its tokens: patches, frames, words or positions
    image: str  # as a data URL; empty where there is none
    frames: list[str]  # the same, by frame
    words: list[str]
    cards: list[MapCard]


def render_maps(
    title: str,
    sentences: Sequence[str],
    facts: Sequence[tuple[str, str]],
    items: Sequence[MapItem],
    scores: Sequence[tuple[str, str, str]],
    source: str,
) -> str:
    """Return the page.

    Parameters
    ----------
    title
        Of the page.
    sentences
        What to know first.
    facts
        Key figures with their names.
    items
        What is shown.
    scores
        How far maps can be trusted: a name, a number, and what it means.
    source
        What the page was made from.
    """
    sections = {"overview": "Summary", "maps": "Maps", "trust": "Trust", "about": "Terms"}
    return fill(
        "maps.html",
        {"items": len(items)},
        script="maps.js",
        styles=("report.css", "maps.css"),
        title=title,
        sections=sections.items(),
        sentences=sentences,
        facts=dict(facts),
        items=items,
        annotators=list(dict.fromkeys(card.annotator for item in items for card in item.cards)),
        scores=scores,
        source=source,
    )
