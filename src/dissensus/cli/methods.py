"""`dissensus methods`, and `agginfo` as peerannot calls it."""

from __future__ import annotations

from typing import Any

import click

from ._shared import json_option, show_json

__all__ = ["agginfo", "methods", "print_entries"]


@click.command()
@click.argument("name", required=False)
@json_option
def methods(name: str | None, as_json: bool) -> None:
    """List the methods and their settings; with a NAME, all about one.

    \b
    Example:
      dissensus methods dawid-skene
    """
    from ..catalogue import catalogue, entries, glances

    if as_json:
        show_json([entry.as_dict() for entry in (entries(name) if name else catalogue())])
    else:
        print_entries(entries(name) if name else glances(), settings=name is not None)


@click.command()
@json_option
def agginfo(as_json: bool) -> None:
    """List the ways to aggregate."""
    from ..catalogue import entries_of
    from ..registry import aggregators

    found = entries_of(aggregators)
    if as_json:
        show_json([entry.as_dict() for entry in found])
    else:
        print_entries(found)


def print_entries(found: list[Any], *, settings: bool = False, title: str | None = None) -> None:
    """Print a table of methods for every family, and all about each if settings are wanted."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    for family in dict.fromkeys(entry.family for entry in found):
        table = Table(
            "method", "what it does", "also called", title=title or f"dissensus {family} -s …"
        )
        for entry in found:
            if entry.family == family:
                aliases = ", ".join(entry.aliases)
                table.add_row(entry.name, escape(entry.summary), escape(aliases))
        console.print(table)
    if not settings:
        return
    for entry in found:
        if entry.settings:
            table = Table("setting", "default", "may be", "meaning", title=entry.name)
            for setting in entry.settings:
                table.add_row(
                    *map(escape, (setting.name, setting.default, setting.limits, setting.doc))
                )
            console.print(table)
        for paragraph in entry.paragraphs:
            console.print(escape(paragraph), highlight=False)
