"""How `dissensus identify` shows what it found."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..identification.annotator_scores import AnnotatorScores
    from ..identification.cleaning import Cleaned
    from ..identification.scores import Asked, Scored

__all__ = [
    "give",
    "item_table",
    "json_of",
    "print_annotators",
    "print_cleaned",
    "print_items",
    "print_score",
    "rows_of",
]

_TOLD = 5  # sentences, pairs and changes on a screen


def give(table: Any, output: str | None) -> None:
    """Write a table, if somebody wants it."""
    if output:
        from ..writers.table_files import write_columns

        write_columns(table, output)


def rows_of(table: Any) -> list[dict[str, Any]]:
    """Return a table as rows for JSON."""
    columns = [values.tolist() for values in table.values()]
    return [
        {name: _plain(value) for name, value in zip(table, row, strict=True)}
        for row in zip(*columns, strict=True)
    ]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def json_of(scored: Scored) -> dict[str, Any]:
    """Return a score for JSON."""
    values = [_plain(value) for value in scored.values.tolist()]
    names = scored.names.tolist()
    return {
        "score": scored.score.name,
        "of": scored.score.of,
        "values": dict(zip(names, values, strict=True)),
    }


def item_table(asked: Asked) -> dict[str, Any]:
    """Return all scores of items."""
    table = dict(asked.items.table())
    if asked.probabilities is not None:
        table["crowdlab_label"] = asked.quality.labels
        table["consensus_quality"] = asked.quality.consensus_quality
    return table


def print_score(scored: Scored, most: int) -> None:
    """Print one score."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    if scored.score.of == "crowd":
        console.print(f"{scored.score.name} {scored.values[0]:.4f}")
        return
    console.print(f"{scored.score.name}, the worst first")
    table = Table()
    table.add_column(scored.score.of, overflow="fold")
    table.add_column(scored.score.name, justify="right")
    for position in scored.order[:most].tolist():
        table.add_row(escape(scored.names[position]), _number(scored.values[position]))
    console.print(table)
    console.print(escape(scored.score.text))
    _tell_more(console, len(scored.names), most)


def print_items(table: dict[str, Any], most: int) -> None:
    """Print the items that are worth a look."""
    import numpy as np
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from ..identification.items import CAUSES

    rank = {cause: position for position, cause in enumerate(_CAUSES)}
    cause = np.array([rank.get(one, len(rank)) for one in table["cause"].tolist()])
    order = np.lexsort((table["confidence"], cause))
    console = Console(highlight=False)
    shown = Table(title=f"{len(order)} items, the hard ones first")
    shown.add_column("item", overflow="fold", max_width=24)
    shown.add_column("why they disagree")
    columns = {
        "labels": "n_labels",
        "entropy": "vote_entropy",
        "agree": "agreement",
        "sure": "confidence",
    }
    for title in columns:
        shown.add_column(title, justify="right")
    for position in order[:most].tolist():
        values = [_number(table[column][position]) for column in columns.values()]
        shown.add_row(escape(table["item"][position]), table["cause"][position], *values)
    console.print(shown)
    counts = {one: int((table["cause"] == one).sum()) for one in CAUSES}
    console.print("; ".join(f"{one} {count}" for one, count in counts.items() if count))
    _tell_more(console, len(order), most)


# What is worth a look first.
_CAUSES = ("hard", "ambiguous", "somebody is unreliable", "one label", "clear")


def print_annotators(found: AnnotatorScores, most: int) -> None:
    """Print the annotators, the worst first, and why."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    order = found.worst.tolist()
    table = Table(title=f"{len(order)} annotators beside the others, by {found.method}")
    table.add_column("annotator", overflow="fold", max_width=20)
    table.add_column("verdict")
    for title in ("labels", "right", "spam score", "agree"):
        table.add_column(title, justify="right")
    for position in order[:most]:
        right, low, high = (values[position] for values in found.accuracy[1:])
        spam = found.spam_score[position]
        table.add_row(
            escape(found.annotations.annotators[position]),
            found.verdict[position],
            str(found.habits.labels[position]),
            "" if math.isnan(right) else f"{right:.0%} ({100 * low:.0f}–{100 * high:.0f})",
            ""
            if math.isnan(spam)
            else f"{spam:.2f} ({found.spam_low[position]:.2f}–{found.spam_high[position]:.2f})",
            _share(found.habits.agreement[position]),
        )
    console.print(table)
    _tell_more(console, len(order), most)
    told = [f"{count} {word}" for word, count in found.verdict_counts.items()]
    console.print(f"Verdicts: {', '.join(told)}.")
    for position in [position for position in order if found.code[position] < _SUSPECT][:_TOLD]:
        name, word = found.annotations.annotators[position], found.verdict[position]
        console.print(escape(f"{name} ({word}): {found.evidence[position]}"), soft_wrap=True)
    if found.copies is not None:
        _print_copies(console, found.copies)


_SUSPECT = 3  # verdicts before this one are bad


def _print_copies(console: Any, copies: Any) -> None:
    from rich.markup import escape

    pairs = copies.pairs
    for pair in pairs[:_TOLD]:
        told = (
            f"{pair.one} and {pair.other} agree too much: {pair.equal} of {pair.common} labels are "
            f"equal, {pair.expected:.0f} would be by themselves; {pair.share:.0%} look copied."
        )
        console.print(escape(told), soft_wrap=True)
    if len(pairs) > _TOLD:
        console.print(f"{len(pairs) - _TOLD} more pairs agree too much; all are in --json.")
    if copies.looked < 1:
        console.print(f"Pairs were compared on {copies.looked:.0%} of the items.")


def print_cleaned(cleaned: Cleaned, output: str | None) -> None:
    """Print what was left out and what that changed."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    console.print(f"{cleaned.sentence}.", soft_wrap=True)
    for what, names in (("annotators", cleaned.annotators), ("items", cleaned.items)):
        if len(names):
            from .._relation import abbreviate

            console.print(
                escape(f"No label is left of {what} {abbreviate(names)}."), soft_wrap=True
            )
    for change in cleaned.changes[:_TOLD]:
        told = f"{change.item}: {change.before or 'undecided'} → {change.after or 'undecided'}"
        console.print(f"  {escape(told)}", soft_wrap=True)
    if len(cleaned.changes) > _TOLD:
        console.print(f"  … {len(cleaned.changes) - _TOLD} more; all are in --json.")
    console.print(
        f"Kept labels written to {output}." if output else "Nothing is written without -o."
    )


def _tell_more(console: Any, rows: int, most: int) -> None:
    if rows > most:
        console.print(f"{rows - most} more; --most {rows} shows all, -o FILE writes them.")


def _share(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.0%}"


def _number(value: Any) -> str:
    if isinstance(value, float) and math.isnan(value):
        return ""
    return f"{value:.3f}" if float(value) != int(value) else str(int(value))
