"""Writing results: messages, JSON and tables for people."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import click


def is_first() -> bool:
    """Return whether this is the first of several processes, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def note(message: str) -> None:
    """Write a message to standard error; of several processes only the first does."""
    if is_first():
        click.echo(message, err=True)


def show_json(content: Any) -> None:
    """Print a result as JSON."""
    click.echo(json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False))


def number(value: float | None, digits: int = 3) -> str:
    """Return a number as a cell of a table; a dash if it is unknown."""
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def print_text(text: str) -> None:
    """Print sentences, wrapped to the width of the terminal."""
    from rich.console import Console

    Console(highlight=False).print(text, markup=False)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None, box: Any = ...
) -> None:
    """Print a table; columns whose name begins with `>` are aligned to the right."""
    from rich.box import HEAVY_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    frame: dict[str, Any] = {"box": HEAVY_HEAD}
    if box is not ...:
        frame = {"box": box, "padding": (0, 1, 0, 0)}
    table = Table(title=None if title is None else escape(title), **frame)
    for name in columns:
        justify: Any = "right" if name.startswith(">") else "left"
        table.add_column(name.lstrip(">"), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(escape(cell) if isinstance(cell, str) else cell for cell in row))
    Console(highlight=False).print(table)


def write_table(columns: Any, output: str | None) -> None:
    """Write columns as a table, if a file is given."""
    if output:
        from ..writers.writing import write_columns

        write_columns(columns, output)
