"""Atomic files: written under a temporary name, then renamed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder of this package's caches, which the user's environment names."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "dissensus"


def try_lock(handle: int) -> bool:
    """Take the lock of an open file until it is closed; return whether nobody else has it."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # a system without such locks
        return True
    except OSError:
        return False
    return True


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path; it is renamed to `path` only without errors."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield draft
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Yield a new folder; it replaces `path` only without errors."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        draft.mkdir(parents=True)
        yield draft
        if target.exists():
            target.rename(old)
        draft.rename(target)
    finally:
        for leftover in (draft, old):
            shutil.rmtree(leftover, ignore_errors=True)
