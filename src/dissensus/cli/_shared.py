"""What several verbs share: options, progress, and how results are shown."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..annotations import Annotations
    from ..readers import Reading

__all__ = [
    "examine_annotations",
    "is_first",
    "json_option",
    "note",
    "progress_bar",
    "read_annotations",
    "reading_options",
    "seed_option",
    "show_json",
]

Command = TypeVar("Command", bound=Callable[..., Any])

_PATIENCE = 2.0  # seconds before a progress bar appears

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Decides what is random.",
)

_READING = (
    click.option("--format", "format_", help="Format of PATH, where its content does not tell."),
    click.option("--question", help="Which one, where several were asked."),
    click.option(
        "--columns", help="Which column is which, by name or number: item=…,annotator=…,label=…"
    ),
    click.option(
        "--classes", help="All classes in order, with commas, where labels may not show them all."
    ),
    click.option(
        "--missing",
        type=click.Choice(["error", "drop"]),
        default="error",
        show_default=True,
        help="Rows without item, annotator or label.",
    ),
)


def reading_options(command: Command) -> Command:
    """Add the options that say how to read annotations."""
    for option in reversed(_READING):
        command = option(command)
    return command


def examine_annotations(
    path: str,
    format_: str | None,
    question: str | None,
    columns: str | None,
    classes: str | None,
    missing: str,
) -> Reading:
    """Read annotations, and what stands beside them, as the reading options say."""
    from ..readers import examine
    from ..readers.columns import parse_columns

    found = examine(
        path,
        format=format_,
        question=question,
        columns=parse_columns(columns),
        classes=[name.strip() for name in classes.split(",")] if classes else None,
        missing=missing,
    )
    for sentence in found.notes:
        note(sentence)
    return found


def read_annotations(path: str, **reading: Any) -> Annotations:
    """Read annotations as the reading options say."""
    return examine_annotations(path, **reading).annotations


def note(message: str) -> None:
    """Say something beside the result; of several processes the first speaks for all."""
    if is_first():
        click.echo(message, err=True)


def is_first() -> bool:
    """Return whether this is the first of several processes, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def show_json(content: Any) -> None:
    """Print a result for machines."""
    click.echo(json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False))


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Yield a progress callback that shows a bar, on a terminal and after two seconds.

    It takes (done, total, message) of trainings, done of a known `total`, or else a round and its
    objective.
    """
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    began = time.monotonic()
    times = TimeElapsedColumn() if total is None else TimeRemainingColumn()
    bar = Progress(
        TextColumn(what),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        times,
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(what, total=total, state="")

    def progress(done: float, more: float = 0.0, message: str = "") -> None:
        if not bar.live.is_started and time.monotonic() - began > _PATIENCE:
            bar.start()
        if message:
            bar.update(task, completed=done, total=more, state=message)
        elif total is None:
            bar.update(task, state=f"round {done}, objective {more:.6g}")
        else:
            bar.update(task, completed=done, state=f"{done:,} of {total:,}")

    try:
        yield progress
    finally:
        bar.stop()
