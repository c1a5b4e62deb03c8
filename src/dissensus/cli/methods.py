"""`dissensus methods`, and peerannot's `agginfo`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..pages.terminal import print_table, print_text, show_json
from .verb import options

if TYPE_CHECKING:
    from .catalogue import Entry


@click.command()
@click.argument("name", required=False)
@options("json")
def methods(name: str | None, as_json: bool) -> None:
    """List the methods and their settings; with a NAME, describe one.

    \b
    Example:
      dissensus methods dawid-skene
    """
    from .catalogue import catalogue, entries, outlines

    if name:
        show_entries(entries(name), as_json, settings=True)
    else:
        show_entries(catalogue() if as_json else outlines(), as_json)


@click.command()
@options("json")
def agginfo(as_json: bool) -> None:
    """List the methods of aggregation."""
    from .catalogue import entries_of
    from ..registry import aggregators

    show_entries(entries_of(aggregators), as_json)


def show_entries(
    found: list[Entry], as_json: bool, *, settings: bool = False, title: str | None = None
) -> None:
    """Print the methods of every family, and the settings of each on request."""
    if as_json:
        show_json([entry.as_dict() for entry in found])
        return
    for command in dict.fromkeys(entry.command for entry in found):
        rows = [
            (entry.name, entry.summary, ", ".join(entry.aliases))
            for entry in found
            if entry.command == command
        ]
        columns = ("method", "description", "aliases")
        print_table(columns, rows, title or command)
    for entry in found if settings else ():
        if entry.settings:
            rows_of = [(one.name, one.default, one.limits, one.doc) for one in entry.settings]
            print_table(("setting", "default", "range", "meaning"), rows_of, entry.name)
        for paragraph in entry.paragraphs:
            print_text(paragraph)
