"""Panics of polars, as errors: what they write straight to standard error is kept from it.

Damaged files can make polars panic. Python then sees a `BaseException`, and a person a paragraph
about threads and the source code of polars, which no setting keeps away.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

_STDERR = 2
_PANIC = re.compile(rb"\n?thread '[^\n]*panicked at .*", re.DOTALL)  # its words have no end mark
_one_at_a_time = threading.Lock()


@contextmanager
def without_panics() -> Iterator[None]:
    """Raise a panic of polars as an error of it, and keep its words from standard error."""
    try:
        with _without_words():
            yield
    except pl.exceptions.PanicException as problem:
        raise pl.exceptions.ComputeError(str(problem)) from None


@contextmanager
def _without_words() -> Iterator[None]:
    """Hold back what is written to standard error, and then write all of it up to a panic."""
    if not _one_at_a_time.acquire(blocking=False):
        yield  # another thread holds it back already
        return
    try:
        with tempfile.TemporaryFile() as words:
            try:
                stderr = os.dup(_STDERR)
            except OSError:  # it is closed
                yield
                return
            os.dup2(words.fileno(), _STDERR)
            try:
                yield
            finally:
                os.dup2(stderr, _STDERR)
                words.seek(0)
                if written := _PANIC.sub(b"", words.read()):
                    os.write(stderr, written)
                os.close(stderr)
    finally:
        _one_at_a_time.release()
