"""Where annotators look, as one page: items with all their annotators side by side.

Everything is there without scripts; a script lets readers choose an annotator, fade the colours,
and see how each differs from everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .._version import __version__
from .embedding import as_json, policy, resource

__all__ = ["MapCard", "MapItem", "render_maps"]


class MapCard(NamedTuple):
    """One annotator on one item."""

    annotator: str
    label: str  # that they are foreseen to give
    chance: float
    annotations: str  # what they said; empty if that is not known
    map: str  # of an image: the heat, as an address that holds it
    difference: str  # of an image: heat of what is more (red) and less (blue) than of everybody
    strengths: list[float]  # of words and frames, by place: from 0 to 1
    differences: list[float]  # the same for the difference: from −1 to 1


class MapItem(NamedTuple):
    """One item, with all its annotators."""

    name: str
    kind: str  # patches, frames, words or places
    image: str  # as an address that holds it; empty where there is none
    frames: list[str]  # the same, by frame
    words: list[str]
    cards: list[MapCard]


def render_maps(
    title: str,
    sentences: Sequence[str],
    facts: Sequence[tuple[str, str]],
    items: Sequence[MapItem],
    scores: Sequence[tuple[str, str, str]],
    made: str,
) -> str:
    """Return the page.

    Parameters
    ----------
    title
        Of the page.
    sentences
        What to know first.
    facts
        Numbers with their names.
    items
        What is shown.
    scores
        How far maps can be trusted: a name, a number, and what it means.
    made
        With what the page was made.
    """
    from jinja2 import Environment, FunctionLoader
    from markupsafe import Markup

    script = resource("maps.js")
    environment = Environment(loader=FunctionLoader(resource), autoescape=True, trim_blocks=True)
    sections = [("overview", "In short"), ("maps", "Maps"), ("trust", "Trust"), ("about", "Words")]
    annotators = list(dict.fromkeys(card.annotator for item in items for card in item.cards))
    return environment.get_template("maps.html").render(
        policy=policy(script),
        css=Markup(resource("report.css") + resource("maps.css")),
        bundle="",
        script=Markup(script),
        data=Markup(as_json({"items": len(items)})),
        version=__version__,
        title=title,
        sections=sections,
        sentences=sentences,
        facts=[{"name": name, "value": value} for name, value in facts],
        items=items,
        annotators=annotators,
        scores=scores,
        made=made,
    )
