"""Progress of long work: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import rich.progress

_PATIENCE = 2.0  # seconds before a bar appears on a terminal
_PERIOD = 10.0  # seconds between two lines elsewhere


class Progress(Protocol):
    """A progress callback: steps done, steps in all (0 if unknown), and a message."""

    def __call__(self, done: float, total: float = 0, message: str = "") -> None: ...


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Yield a progress callback that reports to standard error.

    On a terminal a bar appears after two seconds; otherwise a line is written every ten seconds.
    Of several processes only the first reports, and none with `DISSENSUS_PROGRESS=0`.
    """
    silent = os.environ.get("RANK", "0") != "0" or os.environ.get("DISSENSUS_PROGRESS") == "0"
    bar = _bar(title) if sys.stderr.isatty() and not silent else None
    last = time.monotonic()

    def progress(done: float, total: float = 0, message: str = "") -> None:
        nonlocal last
        message = message or (f"{done:,} of {total:,}" if total else f"{done:,}")
        waited = time.monotonic() - last
        if bar is not None:
            if waited > _PATIENCE and not bar.live.is_started:
                bar.start()
            bar.update(bar.task_ids[0], completed=done, total=total or None, message=message)
        elif waited > _PERIOD and not silent:
            last = time.monotonic()
            sys.stderr.write(f"{title}: {message}\n")
            sys.stderr.flush()

    try:
        yield progress
    finally:
        if bar is not None:
            bar.stop()


def iterations(progress: Progress) -> Callable[[int, float], None]:
    """Return the callback of a fit, which is given the iteration and the objective."""
    return lambda step, objective: progress(step, 0, f"iteration {step}, objective {objective:.6g}")


def _bar(title: str) -> rich.progress.Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn(title),
        BarColumn(),
        TextColumn("{task.fields[message]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(title, total=None, message="")
    return bar
