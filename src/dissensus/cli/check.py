"""`dissensus check`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ._shared import examine_annotations, json_option, reading_options, show_json

if TYPE_CHECKING:
    from ..checking import Check

__all__ = ["check"]

_MOST_CLASSES = 12
_LINE = 55  # characters of examples on one line


@click.command()
@click.argument("path")
@click.option("--gold", help="Known labels, to be looked at as well.")
@click.option(
    "--labels",
    type=click.Choice(["auto", "nominal", "numeric"]),
    default="auto",
    show_default=True,
    help="What labels are: classes or numbers.",
)
@click.option("--strict", is_flag=True, help="End with exit code 1 if anything serious is found.")
@reading_options
@json_option
def check(
    path: str, gold: str | None, labels: Any, strict: bool, as_json: bool, **reading: Any
) -> None:
    """Say what is in a file and what is wrong with it, before anything is aggregated.

    Looks for labels given twice, classes written in several ways, annotators who share no item,
    who copy or never look, times that cannot be, gold against everybody, and too little to
    learn from. Each finding comes with examples and a remedy.

    \b
    Example:
      dissensus check answers.csv --gold truth.csv
    """
    from .. import checking
    from ..readers import read_truth

    found = examine_annotations(path, **reading)
    told = checking.check(found, gold=read_truth(gold) if gold else None, labels=labels)
    if as_json:
        show_json({"path": path, "format": found.format, **told.as_dict()})
    else:
        _print(path, found.format, told)
    if strict and told.serious:
        sys.exit(1)


def _print(path: str, format_: str, told: Check) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    word = "labels" if told.kind == "classes" else "numbers"
    gold = f", gold for {told.n_gold}" if told.n_gold else ""
    console.print(
        f"[bold]{escape(path)}[/bold] ({escape(format_)}): {told.n_labels} {word} by "
        f"{told.n_annotators} annotators on {told.n_items} items{gold}."
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in ("least", "median", "mean", "most"):
        table.add_column(name, justify="right")
    for name, spread in (
        ("labels per item", told.labels_per_item),
        ("labels per annotator", told.labels_per_annotator),
    ):
        numbers = (f"{spread.median:g}", f"{spread.mean:.1f}")
        table.add_row(name, str(spread.least), *numbers, str(spread.most))
    console.print(table)
    if told.kind == "classes":
        console.print(escape(_classes(told)))
    if not told.findings:
        console.print("Nothing was found that speaks against aggregating.")
        return
    found = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 1, 0))
    found.add_column("", no_wrap=True)
    found.add_column("", ratio=1, overflow="fold")
    for one in told.findings:
        name = escape(one.code)
        lines = [escape(one.sentence)]
        lines += [f"[dim]{escape(example)}[/dim]" for example in _lines(one.examples)]
        if one.remedy:
            lines.append(f"→ {escape(one.remedy)}")
        mark = f"[bold red]{name}\nserious[/bold red]" if one.severity == "serious" else name
        found.add_row(mark, "\n".join(lines))
    console.print(found)
    serious = len(told.serious)
    console.print(f"{serious} serious, {len(told.findings) - serious} worth knowing.")


def _lines(examples: tuple[str, ...]) -> list[str]:
    """Return examples, short ones side by side."""
    together = "; ".join(examples)
    return [together] if together and len(together) <= _LINE else list(examples)


def _classes(told: Check) -> str:
    """Return the most common classes and their share."""
    ordered = sorted(told.classes.items(), key=lambda pair: -pair[1])
    total = max(told.n_labels, 1)
    shown = ", ".join(
        f"{name if len(name) <= 30 else name[:29] + '…'} {count / total:.1%}"
        for name, count in ordered[:_MOST_CLASSES]
    )
    more = f", … ({len(ordered)} in all)" if len(ordered) > _MOST_CLASSES else ""
    return f"classes: {shown}{more}"
