"""A summary as a person in front of a terminal likes to read it."""

from __future__ import annotations

import math

from rich.bar import Bar
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..reporting.summary import CONFIDENT, RankedAnnotator, Summary

__all__ = ["print_summary"]


def print_summary(told: Summary, console: Console | None = None) -> None:
    """Print what there is to tell, most important first."""
    console = console or Console(highlight=False)
    spread = told.labels_per_item
    console.print(
        f"\n[bold]{told.n_annotators} annotators gave {told.n_labels} labels "
        f"to {told.n_items} items[/bold], {spread.least} to {spread.most} each "
        f"({spread.mean:.1f} on average)."
    )
    if told.items_without_labels:
        console.print(f"{told.items_without_labels} items have no label at all.")
    console.print(_agreement(told))
    rounds = f" after {told.rounds} rounds" if told.rounds else ""
    ended = "" if told.converged else ", not converged"
    console.print(
        f"[bold]{escape(told.method)}[/bold]{rounds}{ended}: labels are {told.mean_confidence:.0%} "
        f"sure on average; {told.unsure:.0%} of the items are below {CONFIDENT:.0%}."
    )
    _print_truth(told, console)
    console.print(_classes(told))
    console.print(_annotators("Annotators to trust most", told.best))
    if told.worst:
        console.print(_annotators("Annotators to talk to", told.worst))
    if told.n_unranked:
        console.print(f"{told.n_unranked} annotators gave too few labels to be ranked.")
    if told.disputed:
        console.print(_disputed(told))


def _agreement(told: Summary) -> str:
    if math.isnan(told.percent):
        return "Agreement cannot be told: no item has two labels."
    if math.isnan(told.alpha):
        return "Everybody always says the same class."
    return (
        f"Agreement is [bold]{told.alpha_word}[/bold]: two labels on one item are the same in "
        f"{told.percent:.0%} of cases; Krippendorff's alpha is {told.alpha:.2f}."
    )


def _print_truth(told: Summary, console: Console) -> None:
    if told.evaluation is None:
        return
    score = told.evaluation.scores["accuracy"]
    if score is not None:
        console.print(
            f"The truth of {told.evaluation.n_scored} items is known: "
            f"[bold]{score.value:.1%} of the labels are right[/bold] "
            f"({score.low:.1%} to {score.high:.1%})."
        )


def _classes(told: Summary) -> Table:
    table = Table("class", "given", "inferred", "", title="Labels", title_justify="left")
    most = max((row.inferred for row in told.classes), default=1.0)
    for row in told.classes:
        bar = Bar(most, 0, row.inferred, width=24)
        table.add_row(escape(row.name), f"{row.given:.1%}", f"{row.inferred:.1%}", bar)
    return table


def _annotators(title: str, ranked: tuple[RankedAnnotator, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("annotator")
    for name in ("labels", "right", "with consensus"):
        table.add_column(name, justify="right")
    for one in ranked:
        table.add_row(
            escape(one.name), str(one.n_labels), f"{one.quality:.0%}", f"{one.agreement:.0%}"
        )
    return table


def _disputed(told: Summary) -> Table:
    table = Table(title="Items to look at again", title_justify="left")
    table.add_column("item")
    table.add_column("label")
    table.add_column("sure", justify="right")
    table.add_column("votes")
    for item in told.disputed:
        votes = ", ".join(f"{count} {name}" for name, count in item.votes.items())
        label = "undecided" if item.label is None else item.label
        table.add_row(escape(item.name), escape(label), f"{item.confidence:.0%}", escape(votes))
    return table
