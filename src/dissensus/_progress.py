"""Progress of long work: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

_PATIENCE = 2.0  # seconds before a bar appears on a terminal
_PERIOD = 10.0  # seconds between two lines elsewhere


class Progress(Protocol):
    """A progress callback: steps done, steps in all (0 if unknown), and a message."""

    def __call__(self, done: float, total: float = 0, message: str = "") -> None: ...


def silent(done: float, total: float = 0, message: str = "") -> None:
    """Report nothing."""


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Yield a progress callback that reports to standard error.

    On a terminal a bar appears after two seconds; otherwise a line is written every ten seconds.
    Of several processes only the first reports, and none with `DISSENSUS_PROGRESS=0`.
    """
    if os.environ.get("RANK", "0") != "0" or os.environ.get("DISSENSUS_PROGRESS") == "0":
        yield silent
    elif sys.stderr.isatty():
        yield from _bar(title)
    else:
        yield _lines(title)


def iterations(progress: Progress) -> Callable[[int, float], None]:
    """Return the callback of a fit, which is given the iteration and the objective."""
    return lambda step, objective: progress(step, 0, f"iteration {step}, objective {objective:.6g}")


def _bar(title: str) -> Iterator[Progress]:
    from rich import progress as rich
    from rich.console import Console

    bar = rich.Progress(
        rich.TextColumn(title),
        rich.BarColumn(),
        rich.TextColumn("{task.fields[message]}"),
        rich.TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(title, total=None, message="")
    began = time.monotonic()

    def progress(done: float, total: float = 0, message: str = "") -> None:
        if not bar.live.is_started and time.monotonic() - began > _PATIENCE:
            bar.start()
        shown = message or _count(done, total)
        bar.update(task, completed=done, total=total or None, message=shown)

    try:
        yield progress
    finally:
        bar.stop()


def _lines(title: str) -> Progress:
    written = time.monotonic()

    def progress(done: float, total: float = 0, message: str = "") -> None:
        nonlocal written
        if time.monotonic() - written > _PERIOD:
            written = time.monotonic()
            sys.stderr.write(f"{title}: {message or _count(done, total)}\n")
            sys.stderr.flush()

    return progress


def _count(done: float, total: float) -> str:
    return f"{done:,} of {total:,}" if total else f"{done:,}"
