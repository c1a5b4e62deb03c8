"""How `dissensus identify` prints scores of annotators and items."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..base.plain import as_plain
from ..pages.terminal import echo, print_table, print_text

if TYPE_CHECKING:
    from .annotator_scores import AnnotatorScores
    from .cleaning import Cleaned
    from .scores import Scored

_SENTENCES = 5  # sentences, pairs and changes on a screen
_CAUSES = ("hard", "ambiguous", "somebody is unreliable", "one label", "clear")  # as they are shown


def score_json(scored: Scored) -> dict[str, Any]:
    """Return a score for JSON."""
    by_name = dict(zip(scored.names.tolist(), as_plain(scored.values), strict=True))
    return {"score": scored.score.name, "of": scored.score.of, "values": by_name}


def print_score(scored: Scored, top: int) -> None:
    """Print one score, the worst first."""
    if scored.score.of == "crowd":
        echo(f"{scored.score.name} {scored.values[0]:.4f}")
        return
    echo(f"{scored.score.name}, the worst first")
    rows = [(scored.names[code], _cell(scored.values[code])) for code in scored.order[:top]]
    print_table((scored.score.of, f">{scored.score.name}"), rows)
    print_text(scored.score.text)
    _print_more(len(scored.names), top)


def print_items(table: dict[str, Any], top: int) -> None:
    """Print the items, the hard ones first."""
    import numpy as np

    from .items import CAUSES

    rank = {cause: position for position, cause in enumerate(_CAUSES)}
    cause = np.array([rank.get(one, len(rank)) for one in table["cause"].tolist()])
    order = np.lexsort((table["confidence"], cause))
    shown = ("n_labels", "vote_entropy", "agreement", "confidence")
    rows = [
        (table["item"][item], table["cause"][item], *(_cell(table[name][item]) for name in shown))
        for item in order[:top].tolist()
    ]
    columns = ("item", "why they disagree", ">labels", ">entropy", ">agree", ">confidence")
    print_table(columns, rows, f"{len(order)} items, the hard ones first")
    counts = {one: int((table["cause"] == one).sum()) for one in CAUSES}
    print_text("; ".join(f"{one} {count}" for one, count in counts.items() if count))
    _print_more(len(order), top)


def print_annotators(found: AnnotatorScores, top: int) -> None:
    """Print the annotators, the worst first, and the evidence."""
    from .verdicts import FAULTS

    order = found.worst.tolist()
    names, follow, styles = found.annotations.annotators, found.basis.following, found.basis.styles
    columns: dict[str, Callable[[int], str]] = {
        "annotator": lambda code: str(names[code]),
        "verdict": lambda code: str(found.verdict[code]),
        **_kind_column(found),
        ">labels": lambda code: str(found.behaviour.labels[code]),
        ">follows": lambda code: _bounded(follow[:3], code),
    }
    if found.gold is not None:
        columns[">known"] = lambda code: _percent(found.gold, code)
    if styles is None:
        columns[">right"] = lambda code: _percent(found.accuracy, code)
    else:
        columns[">level"] = lambda code: _bounded(styles.level, code)
    rows = [[cell(code) for cell in columns.values()] for code in order[:top]]
    by = f"by {found.method}" if found.peers is not None and styles is None else "by their ratings"
    print_table(tuple(columns), rows, f"{len(order)} annotators compared with the others, {by}")
    _print_more(len(order), top)
    counts = [f"{count} {word}" for word, count in found.verdict_counts.items()]
    print_text(f"Verdicts: {', '.join(counts)}.")
    suspect = [code for code in order if found.verdict[code] in FAULTS]
    for code in suspect[:_SENTENCES]:
        echo(f"{names[code]} ({found.verdict[code]}): {found.evidence[code]}")
    if "likely random" in found.verdict_counts and not found.basis.gold_labels.any():
        echo("Known items (--gold) would settle who is only likely random.")
    if found.copies is not None:
        _print_copies(found.copies)


def _kind_column(found: AnnotatorScores) -> dict[str, Callable[[int], str]]:
    kinds = getattr(found.annotations, "annotator_kinds", ())
    return {"kind": lambda code: str(kinds[code])} if len(kinds) else {}


def _bounded(bounded: Any, code: int) -> str:
    value, low, high = (float(bound[code]) for bound in bounded)
    return "" if math.isnan(value) else f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _percent(share: Any, code: int) -> str:
    value, low, high = (float(bound[code]) for bound in share[1:])
    return "" if math.isnan(value) else f"{value:.0%} ({100 * low:.0f}–{100 * high:.0f})"


def _print_copies(copies: Any) -> None:
    for pair in copies.pairs[:_SENTENCES]:
        echo(
            f"{pair.one} and {pair.other} agree too much: {pair.equal} of {pair.common} labels are "
            f"equal, {pair.expected:.0f} are expected; {pair.share:.0%} look copied."
        )
    if len(copies.pairs) > _SENTENCES:
        more = len(copies.pairs) - _SENTENCES
        echo(f"{more} more pairs agree too much; all are in --json.")
    if copies.sampled < 1:
        echo(f"Pairs were compared on {copies.sampled:.0%} of the items.")


def print_cleaned(cleaned: Cleaned, output: str | None) -> None:
    """Print what was dropped and what that changed."""
    from ..base.names import abbreviate

    echo(f"{cleaned.sentence}.")
    for kind, names in (("annotators", cleaned.annotators), ("items", cleaned.items)):
        if len(names):
            echo(f"No label is left of {kind} {abbreviate(names)}.")
    for change in cleaned.changes[:_SENTENCES]:
        before, after = change.before or "undecided", change.after or "undecided"
        echo(f"  {change.item}: {before} → {after}")
    if len(cleaned.changes) > _SENTENCES:
        echo(f"  … {len(cleaned.changes) - _SENTENCES} more; all are in --json.")
    echo(f"Kept labels written to {output}." if output else "Nothing is written without -o.")


def _print_more(rows: int, top: int) -> None:
    if rows > top:
        echo(f"{rows - top} more; --top {rows} shows all, -o FILE writes them.")


def _cell(value: Any) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.3f}" if float(value) != int(value) else str(int(value))
