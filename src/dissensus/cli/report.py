"""`dissensus report`."""

from __future__ import annotations

from typing import Any

import click

from ._shared import (
    examine_annotations,
    json_option,
    note,
    progress_bar,
    reading_options,
    seed_option,
    show_json,
)

__all__ = ["report"]


@click.command()
@click.argument("path")
@click.option("--strategy", "-s", default="auto", show_default=True, help="name[setting=value,…]")
@click.option("--output", "-o", default="report.html", show_default=True, help="Where it goes.")
@click.option("--gold", help="Known labels that may be used; those found in PATH otherwise.")
@click.option("--truth", help="Known labels to score with; nothing learns from them.")
@click.option("--title", help="Of the report.  [default: the file's name]")
@reading_options
@json_option
@seed_option
def report(
    path: str,
    strategy: str,
    output: str,
    gold: str | None,
    truth: str | None,
    title: str | None,
    as_json: bool,
    seed: int,
    **reading: Any,
) -> None:
    """Tell everything about a data set on one page.

    Reads anything, checks it, aggregates, scores annotators and items, and writes a page that
    needs no network. A short summary goes to the terminal.

    \b
    Example:
      dissensus report answers.csv -o report.html
    """
    from pathlib import Path

    from ..io import read_truth
    from ..reporting.report import report as make
    from ..reporting.sentences import advice

    found = examine_annotations(path, **reading)
    with progress_bar("reporting", 7) as tell:
        told = make(
            found,
            strategy,
            name=title or (Path(path).name if path != "-" else "standard input"),
            gold=read_truth(gold) if gold else None,
            truth=read_truth(truth) if truth else None,
            seed=seed,
            progress=lambda done, _total: tell(done),
        )
        told.save(output)
    if as_json:
        show_json(told.as_dict())
        return
    for sentence in told.sentences:
        click.echo(sentence)
    click.echo("\nWhat to do:")
    for place, sentence in enumerate(advice(told), 1):
        click.echo(f"  {place}. {sentence}")
    note(f"\nThe report is in {output}")
