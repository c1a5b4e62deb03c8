"""Output files and folders: complete or not there, whoever else writes or reads them.

A file is written under a name of its own beside its target and renamed. A link is followed, a
device or pipe is written through and never replaced. Errors of the system are `OutputError`s.
Whatever is printed has its control characters shown, so that no name rules a terminal.
"""

from __future__ import annotations

import ctypes
import errno
import fnmatch
import glob
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from ..errors import OutputError
from .progress import hide_bar

T = TypeVar("T")
_ATTEMPTS = 50  # for a folder that others replace all the time
_PATIENCE = 0.02  # seconds between two looks at a lock

_UNPRINTABLE = [code for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"]
_UNPRINTABLE += [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]  # they reorder what is shown
_VISIBLE = {code: f"\\u{code:04x}" for code in _UNPRINTABLE}


def printable(text: str) -> str:
    r"""Return a text with control characters made visible: they could rule a terminal.

    >>> printable("ann\x1b[31m")
    'ann\\u001b[31m'
    """
    return text.translate(_VISIBLE)


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
def locked(path: str | Path) -> Iterator[None]:
    """Wait until nobody else has the lock of a file, and keep it; the file need not be there.

    The lock is a hidden file beside it, since a file that is replaced takes its own lock away.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name[:80]}.lock")
    with ExitStack() as stack:
        with output_errors(path):
            stack.enter_context(_parents(target))
            handle = _wait_for(beside)
        try:
            yield
        finally:
            with suppress(OSError):  # a system may keep what is open
                beside.unlink()
            os.close(handle)


def _wait_for(path: Path) -> int:
    """Return an open file with its lock, once it has it and is still the file of that name."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with suppress(FileNotFoundError):  # whoever had the lock has removed it
            if try_lock(handle) and os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)
        time.sleep(_PATIENCE)


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield an empty temporary file; it becomes `path` only without errors."""
    with output_errors(path):
        target = _target(path)
        if target.is_dir():
            raise OutputError(f"{path}: is a folder; name a file")
        if is_stream(target):
            with tempfile.TemporaryDirectory(prefix="dissensus-") as folder:
                draft = Path(folder) / "draft"
                yield draft
                with draft.open("rb") as source, target.open("wb") as out:
                    shutil.copyfileobj(source, out)
            return
        with _parents(target), _draft(target, Path.touch) as draft:
            yield draft
            if target.exists():
                shutil.copymode(target, draft)
            draft.replace(target)


@contextmanager
def atomic_folder(path: str | Path, replaces: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a new folder; it becomes `path` only without errors.

    An earlier folder is replaced only if all names in it match the patterns of `replaces`.
    """
    with output_errors(path):
        target = _target(path)
        check_folder(target, replaces)
        with _parents(target), _draft(target, Path.mkdir) as draft:
            yield draft
            check_folder(target, replaces)
            _exchange(draft, target)


def check_folder(path: str | Path, replaces: Sequence[str]) -> None:
    """Refuse to replace a file, or a folder with other names than these patterns."""
    with output_errors(path):
        if not os.path.lexists(path):
            return
        if not Path(path).is_dir():
            raise OutputError(f"{path}: is a file; name a folder")
        names = sorted(name for name in os.listdir(path) if not name.endswith(".part"))  # noqa: PTH208
        foreign = [name for name in names if not any(fnmatch.fnmatch(name, p) for p in replaces)]
        if foreign:
            raise OutputError(f"{path}: holds something else, {foreign[0]!r}; name a new folder")


def read_folder_whole(folder: Path, read: Callable[[], T]) -> T:
    """Return what is read from a folder that may be replaced meanwhile: all of it from one."""
    for _ in range(_ATTEMPTS):
        identity = _identity(folder)
        try:
            content = read()
        except Exception:
            if identity == _identity(folder):
                raise
            continue
        if identity == _identity(folder):
            return content
    raise OSError(f"{folder} is replaced again and again")


def is_input(output: str, source: str) -> bool:
    """Return whether writing a file would replace a source, or a part of it."""
    if not Path(output).is_file():
        return False
    if not Path(source).exists():  # perhaps a pattern
        return any(is_input(output, path) for path in glob.glob(source))  # noqa: PTH207
    if Path(source).is_dir():
        part = Path(output).suffix in (".parquet", ".pq", ".parq")
        part |= Path(output).name in ("answers.json", "metadata.json")
        return part and Path(source).resolve() in Path(output).resolve().parents
    return Path(output).samefile(source)


@contextmanager
def output_errors(path: str | Path) -> Iterator[None]:
    """Turn errors of the system while a file or folder is written into one line."""
    try:
        yield
    except OutputError:
        raise
    except Exception as problem:
        if not _of_system(problem):
            raise
        raise OutputError(f"{path}: {reason(problem)}") from None


def write_stdout(body: bytes) -> None:
    """Write to standard output; on a terminal with control characters made visible."""
    if sys.stdout.isatty():
        body = printable(body.decode("utf-8", errors="replace")).encode()
    hide_bar()
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()


def is_stream(path: str | Path) -> bool:
    """Return whether a path is a device or a pipe, also that of standard input or output."""
    return Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir())


def reason(problem: Exception) -> str:
    """Return why the system refused, in its own words."""
    words = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    if " requested and " in words:  # NumPy's words for it
        words = os.strerror(errno.ENOSPC)
    match = re.search(r"([^:]+) \(os error \d+\)", words)
    return " ".join((match[1] if match else words).split()).lower()


def _of_system(problem: Exception) -> bool:
    """Return whether the system refused: libraries also report it as errors of their own."""
    library = type(problem).__module__.partition(".")[0] in ("polars", "safetensors")
    return isinstance(problem, OSError) or (library and "(os error" in str(problem))


def _target(path: str | Path) -> Path:
    """Return the place to write to: where a link points, if it is one."""
    link = Path(path).is_symlink() and not is_stream(path)  # links to pipes lead nowhere
    return Path(os.path.realpath(path)) if link else Path(path)


def _draft_name(target: Path) -> Path:
    """Return a hidden name that no other process or thread has."""
    return target.with_name(f".{target.name[:80]}.{secrets.token_hex(6)}.part")


@contextmanager
def _draft(target: Path, create: Callable[..., None]) -> Iterator[Path]:
    """Yield a draft, locked as long as this process lives; remove it, and those of killed runs."""
    _remove_leftovers(target)
    for _ in range(_ATTEMPTS):
        draft = _draft_name(target)
        create(draft)
        with _locked(draft) as is_ours:
            if is_ours is False or not draft.exists():  # taken for a leftover before it was locked
                continue
            try:
                yield draft
            finally:
                _remove(draft)
            return
    raise OutputError(f"{target}: other processes remove what is written, again and again")


def _remove_leftovers(target: Path) -> None:
    """Remove the drafts of a target that no living process holds; without locks, none."""
    name = re.compile(re.escape(f".{target.name[:80]}.") + r"[0-9a-f]{12}\.part")
    with suppress(OSError):  # a folder that can be written, but not read
        for leftover in filter(name.fullmatch, os.listdir(target.parent)):  # noqa: PTH208
            with _locked(target.with_name(leftover)) as is_free:
                if is_free:
                    _remove(target.with_name(leftover))


def _remove(draft: Path) -> None:
    if draft.is_dir():
        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[bool | None]:
    """Hold the lock of a file or folder; yield whether nobody else has it, `None` without locks."""
    try:
        import fcntl
    except ImportError:
        yield None
        return
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        yield None
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_free: bool | None = True
        except OSError as problem:
            is_free = False if problem.errno in (errno.EAGAIN, errno.EACCES) else None
        yield is_free
    finally:
        os.close(handle)


@contextmanager
def _parents(target: Path) -> Iterator[None]:
    """Create the folders above; without success, remove those that are new."""
    new = [folder for folder in target.parents if not folder.exists()]
    above = next((folder for folder in target.parents if folder.exists()), target.parent)
    if not above.is_dir():
        raise OutputError(f"{target}: {above} is a file, and not a folder to write into")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        with suppress(OSError):
            for folder in new:
                folder.rmdir()
        raise


def _exchange(draft: Path, target: Path) -> None:
    """Give a folder the name of another; the draft then is the old one, if there was any."""
    for attempt in range(_ATTEMPTS):
        try:
            if not target.exists():
                draft.rename(target)
            elif not _swap(draft, target):
                old = _draft_name(target)  # no exchange in one step on this system
                with _locked(target):  # so that no other run takes it for a leftover
                    target.rename(old)
                    draft.rename(target)
                    old.rename(draft)
            return
        except OSError:  # another process came first
            if attempt + 1 == _ATTEMPTS:
                raise


def _swap(draft: Path, target: Path) -> bool:
    """Exchange the names of two folders in one step, where the system can (Linux)."""
    if sys.platform != "linux":
        return False
    cwd, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    rename = getattr(ctypes.CDLL(None), "renameat2", lambda *_: -1)
    return rename(cwd, os.fsencode(draft), cwd, os.fsencode(target), exchange) == 0


def _identity(folder: Path) -> tuple[int, int, int] | None:
    try:
        stat = folder.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns
