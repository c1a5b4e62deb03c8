"""Writing results: messages, JSON and tables for people."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
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


def interval(low: float, high: float, digits: int = 4) -> str:
    """Return an interval as a cell of a table; nothing if it is unknown."""
    return "" if math.isnan(low) else f"{low:.{digits}f} to {high:.{digits}f}"


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


def print_scores(scores: Mapping[str, Any], names: Mapping[str, str], title: str) -> None:
    """Print scores with intervals, in the order of their names in words."""
    rows = [
        (words, number(score.value, 4), interval(score.low, score.high))
        for name, words in names.items()
        if (score := scores.get(name)) is not None
    ]
    print_table(("score", "value", "95 % interval"), rows, title)


def class_columns(classes: Any, values: Any, prefix: str = "p") -> dict[str, Any]:
    """Return a column for every class, the last axis of the values."""
    return {f"{prefix}:{name}": values[..., k].ravel() for k, name in enumerate(classes.tolist())}


def write_table(columns: Any, output: str | None) -> None:
    """Write columns as a table, if a file is given."""
    if output:
        from ..writers.writing import write_columns

        write_columns(columns, output)
