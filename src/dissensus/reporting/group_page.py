"""Two rounds or groups as one page."""

from __future__ import annotations

import math
from typing import Any

from .group_comparison import Rounds, Side
from .group_figures import change_figure, classes_figure
from .sections import Cell, Download, Section, Small, Sortable, render_sections
from .sentences import amount, percent
from .summary import SURE

__all__ = ["render_rounds"]

_MOST = 1000  # rows of a table


def render_rounds(rounds: Rounds) -> str:
    """Return the page."""
    one, two = rounds.first, rounds.second
    charts = {"classes": classes_figure(rounds)}
    if rounds.annotators:
        charts["change"] = change_figure(rounds)
    return render_sections(
        f"{one.name} and {two.name}",
        rounds.sentences,
        _facts(rounds),
        [
            Section(
                "numbers",
                "Side by side",
                charts=["classes"],
                small=[Small("With 95% intervals", ["", one.name, two.name], _numbers(rounds))],
            ),
            Section(
                "annotators",
                "Annotators in both",
                [_about_annotators(rounds)],
                ["change"] if rounds.annotators else [],
                sortable=[_annotators(rounds)] if rounds.annotators else [],
            ),
            Section(
                "items",
                "Items with another label",
                [_about_items(rounds)],
                sortable=[_items(rounds)] if rounds.items else [],
            ),
        ],
        charts=charts,
        downloads=_downloads(rounds),
        about={
            "Right": "How often labels are what the others say, those of both sides together.",
            "Change": "Second less first. It is clear where chance would hardly bring about a "
            "single one among all annotators.",
            "Belief": f"How probable a label is. Below {SURE:.0%} it deserves a second look.",
            "Alpha": "Krippendorff's: 1 is full agreement, 0 is what chance would give.",
        },
        made=f"with {one.result.method}, seed {rounds.seed}",
    )


def _facts(rounds: Rounds) -> dict[str, str]:
    return {
        "items in both": amount(rounds.n_common, "").rstrip("s ").strip(),
        "with the same label": percent(rounds.same.value),
        "change of alpha": f"{rounds.alpha.value:+.2f}",
        "annotators in both": str(len(rounds.annotators)),
    }


def _numbers(rounds: Rounds) -> list[tuple[str, ...]]:
    def row(name: str, of: Any) -> tuple[str, ...]:
        return (name, of(rounds.first), of(rounds.second))

    rows = [
        row("annotators", lambda side: str(side.annotations.n_annotators)),
        row("items", lambda side: str(side.annotations.n_items)),
        row("labels", lambda side: str(len(side.annotations))),
        row(
            "labels on an item",
            lambda side: f"{len(side.annotations) / max(side.annotations.n_items, 1):.1f}",
        ),
        row("pairs that agree", lambda side: _shown(side.agreement["percent"], percent)),
        row("alpha", lambda side: _shown(side.alpha, _decimals)),
        row("labels right, by the others", lambda side: _shown(side.right, percent)),
        row("items that deserve a second look", lambda side: _shown(side.unsure, percent)),
        row("annotators who answer at random", lambda side: str(side.n_random)),
    ]
    if rounds.first.evaluation is not None:
        rows.append(row("items labelled right", _accuracy))
    if rounds.n_common:
        told = _shown(rounds.same, percent)
        rows.append(("the same label on common items", told, told))
    return rows


def _shown(one: Any, form: Any) -> str:
    if math.isnan(one.value):
        return "–"
    interval = "" if math.isnan(one.low) else f" ({form(one.low)} to {form(one.high)})"
    return f"{form(one.value)}{interval}"


def _decimals(value: float) -> str:
    return f"{value:.2f}"


def _accuracy(side: Side) -> str:
    score = None if side.evaluation is None else side.evaluation.scores.get("accuracy")
    return "–" if score is None else _shown(score, percent)


def _about_annotators(rounds: Rounds) -> str:
    if not rounds.annotators:
        return "No annotator labelled in both, so nobody can be followed."
    return (
        f"{amount(len(rounds.annotators), 'annotator')} labelled in both. “Right” is how often a "
        "label is what the others say, those of both sides together."
    )


def _about_items(rounds: Rounds) -> str:
    if not rounds.n_common:
        return "No item is in both."
    kappa = "" if math.isnan(rounds.kappa) else f" Cohen's kappa of the two is {rounds.kappa:.2f}."
    return (
        f"{len(rounds.items)} of {amount(rounds.n_common, 'common item')} got another label, the "
        f"surest first.{kappa}"
    )


def _annotators(rounds: Rounds) -> Sortable:
    one, two = rounds.first.name, rounds.second.name
    heads = [
        *(("annotator", "text"), (f"labels, {one}", "number"), (f"labels, {two}", "number")),
        *((f"right, {one}", "number"), (f"right, {two}", "number"), ("change", "number")),
        *(("95% interval", "text"), ("verdict", "text")),
    ]
    rows: list[list[Cell]] = [
        [
            (each.name, each.name),
            *((str(count), count) for count in each.labels),
            *((percent(share), share) for share in each.right),
            (_points(each.change.value), each.change.value),
            (f"{100 * each.change.low:+.0f} to {100 * each.change.high:+.0f}", None),
            (each.word, None),
        ]
        for each in rounds.annotators[:_MOST]
    ]
    return Sortable(
        "annotator-table", f"{len(rows)} annotators, the largest loss first", heads, rows
    )


def _points(share: float) -> str:
    return f"{100 * share:+.0f} points"


def _items(rounds: Rounds) -> Sortable:
    one, two = rounds.first.name, rounds.second.name
    heads = [
        *(("item", "text"), (f"label, {one}", "text"), (f"belief, {one}", "number")),
        *((f"label, {two}", "text"), (f"belief, {two}", "number")),
    ]
    rows: list[list[Cell]] = [
        [
            (each.name, each.name),
            (each.label[0], None),
            (percent(each.posterior[0]), each.posterior[0]),
            (each.label[1], None),
            (percent(each.posterior[1]), each.posterior[1]),
        ]
        for each in rounds.items[:_MOST]
    ]
    part = f"{len(rows)} of {amount(len(rounds.items), 'item')}"
    return Sortable("item-table", f"{part} with another label", heads, rows)


def _downloads(rounds: Rounds) -> dict[str, Download]:
    return {
        "changed_items": Download(
            "Download the items with another label (CSV)",
            ["item", "first_label", "second_label", "first_belief", "second_belief"],
            [
                [one.name, *one.label, *(round(value, 4) for value in one.posterior)]
                for one in rounds.items
            ],
        ),
        "annotators": Download(
            "Download the annotators in both (CSV)",
            [
                *("annotator", "first_labels", "second_labels", "first_right", "second_right"),
                *("change", "low", "high", "verdict"),
            ],
            [
                [
                    *(one.name, *one.labels, *(round(value, 4) for value in one.right)),
                    *(*(round(value, 4) for value in one.change), one.word),
                ]
                for one in rounds.annotators
            ],
        ),
    }
