"""Progress of long work: a bar on a terminal, a line now and then elsewhere.

Long work can also have a limit of time: whoever searches or trains asks whether it is over.

    with time_limit(60) as limit:
        estimator.fit(X, annotations)  # ends with the best found
    limit.reached
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import rich.progress


_PATIENCE = 1.5  # seconds before a bar appears on a terminal; importing rich takes some more
_PERIOD = 10.0  # seconds between two lines elsewhere
wait = Event.wait  # until an event, or some seconds
clock = monotonic


class Progress(Protocol):
    """A progress callback: steps done, steps in all (0 if unknown), and a message."""

    def __call__(self, done: float, total: float = 0, message: str = "") -> None:
        """Take note of progress."""
        ...


class _Reporter:
    """A thread that reports the last state of some work, however rarely that changes."""

    current: _Reporter | None = None

    def __init__(self, title: str) -> None:
        self.title, self.ended = title, Event()
        self.done, self.total, self.message = 0.0, 0.0, ""
        self.bar: rich.progress.Progress | None = None
        self.printed, self.lock = False, Lock()  # since the last look
        work = self._show_bar if sys.stderr.isatty() else self._write_lines
        self.thread = Thread(target=work, args=(sys.stderr,), daemon=True)

    def __call__(self, done: float, total: float = 0, message: str = "") -> None:
        message = message or (f"{done:,} of {total:,}" if total else f"{done:,}")
        self._set(self.title, done, total, message)

    def begin(self, title: str) -> None:
        """Report another part of the work."""
        self._set(title, 0.0, 0.0, "")

    def hide(self) -> None:
        """Remove the bar, for something is printed; it comes back after some seconds."""
        with self.lock:
            self.printed = True
            if self.bar is not None:
                self.bar.stop()
            self.bar = None

    def end(self) -> None:
        self.ended.set()
        self.thread.join()
        self.hide()

    def _set(self, title: str, done: float, total: float, message: str) -> None:
        self.title, self.done, self.total, self.message = title, done, total, message
        bar = self.bar
        if bar is not None:
            self._update(bar)

    def _show_bar(self, _: object) -> None:
        while not wait(self.ended, _PATIENCE):
            with self.lock:
                if self.bar is None and not self.printed:
                    self.bar = _bar()
                    self._update(self.bar)
                    self.bar.start()
                self.printed = False

    def _update(self, bar: rich.progress.Progress) -> None:
        bar.update(
            bar.task_ids[0],
            description=self.title,
            completed=self.done,
            total=self.total or None,
            message=self.message,
        )

    def _write_lines(self, stream: object) -> None:
        seconds = 0.0
        while not wait(self.ended, _PERIOD):
            seconds += _PERIOD
            print(f"{self.title}: {self.message or f'{seconds:g} s'}", file=stream, flush=True)  # type: ignore[call-overload]


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Yield a progress callback that reports to standard error.

    On a terminal a bar appears within two seconds; otherwise a line is written every ten seconds,
    whether or not there was a call in the meantime. Of several processes only the first reports,
    and none with `DISSENSUS_PROGRESS=0`.
    """
    outer = _Reporter.current
    if os.environ.get("RANK", "0") != "0" or os.environ.get("DISSENSUS_PROGRESS") == "0":
        yield lambda *_, **__: None
    elif outer is not None:  # a part of other work has its title
        outer_title = outer.title
        outer.begin(title)
        try:
            yield outer
        finally:
            outer.begin(outer_title)
    else:
        _Reporter.current = reporter = _Reporter(title)
        reporter.thread.start()
        try:
            yield reporter
        finally:
            _Reporter.current = None
            reporter.end()


def hide_bar() -> None:
    """Remove the bar of this process, if there is one: whoever prints would spoil it."""
    if _Reporter.current is not None:
        _Reporter.current.hide()


def iterations(progress: Progress) -> Callable[[int, float], None]:
    """Return the callback of a fit, which is given the iteration and the objective."""
    return lambda step, objective: progress(step, 0, f"iteration {step}, objective {objective:.6g}")


def _bar() -> rich.progress.Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[message]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
    )
    bar.add_task("", total=None, message="")
    return bar


@dataclass
class TimeLimit:
    """Start and end of some work, and whether something was left out because of the end."""

    start: float
    end: float
    reached: bool = False

    @property
    def seconds(self) -> float:
        """How long the work has taken until now."""
        return clock() - self.start


_current: ContextVar[TimeLimit | None] = ContextVar("time_limit", default=None)


@contextmanager
def time_limit(seconds: float) -> Iterator[TimeLimit]:
    """Let what learns in this context stop after some seconds, with the best found."""
    start = clock()
    limit = TimeLimit(start, start + seconds)
    token = _current.set(limit)
    try:
        yield limit
    finally:
        _current.reset(token)


@contextmanager
def share_of_time(share: float) -> Iterator[None]:
    """Give the work in this context a share of the time that is left, if there is a limit."""
    outer = _current.get()
    if outer is None:
        yield
        return
    with time_limit(share * max(outer.end - clock(), 0.0)) as inner:
        try:
            yield
        finally:
            outer.reached |= inner.reached


def out_of_time() -> bool:
    """Return whether the limit is reached; whoever asks then leaves the rest out.

    >>> with time_limit(0):
    ...     out_of_time()
    True
    """
    limit = _current.get()
    if limit is None or clock() < limit.end:
        return False
    limit.reached = True
    return True
