"""A training as it goes, on a terminal: epoch, loss, score, and the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["training_bar"]

_PATIENCE = 2.0  # seconds before the bar appears


@contextmanager
def training_bar(what: str = "training") -> Iterator[Callable[[int, int, str], None]]:
    """Yield what `train` takes as `progress`; silent where there is no terminal."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    began = time.monotonic()
    bar = Progress(
        TextColumn(what),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(what, state="")

    def progress(done: int, total: int, words: str) -> None:
        if not bar.live.is_started and time.monotonic() - began > _PATIENCE:
            bar.start()
        bar.update(task, completed=done, total=total, state=words)

    try:
        yield progress
    finally:
        bar.stop()
