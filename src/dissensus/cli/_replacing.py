"""Files that a command replaces: it says so, and refuses those that it did not write."""

from __future__ import annotations

import filecmp
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..errors import DissensusError, OutputError
from ..pages.terminal import note


def replacing(paths: Sequence[Path], *, own: bool, force: bool) -> None:
    """Report which of these files are replaced; refuse to, unless they are the command's own."""
    there = [str(path) for path in paths if path.exists()]
    if not there:
        return
    if not own and not force:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise OutputError(
            f"{there[0]}{more}: there already, and not written by this command; --force replaces it"
        )
    note(f"replaced: {', '.join(there)}")


def replace_converted(
    found: Any,
    target: str,
    to: str | None,
    write: Callable[[Any, Path, str | None], None],
    *,
    force: bool,
) -> None:
    """Check the target of a conversion.

    It is our own if reading it and writing that gives the same file. Where nothing would change,
    there is nothing to report.
    """
    from ..formats.any_kind import AnswerReading, examine_any

    path = Path(target)
    if target == "-" or not (path.is_file() or path.is_dir()):
        return
    layout = to or ("peerannot" if path.is_dir() else None)
    with TemporaryDirectory(prefix="dissensus-") as folder:
        copy, own = Path(folder) / path.resolve().name, False
        write(found, copy, layout)
        if _same(copy, path):
            return
        names = [path / one.name for one in copy.iterdir()] if copy.is_dir() else [path]
        with suppress(DissensusError):
            there = examine_any(path)
            if isinstance(there, AnswerReading):
                readings: tuple[Any, ...] = (there.answers,)
            else:
                readings = (there, replace(there, texts=None))  # texts may be the items' names
            for reading in readings:
                write(reading, copy, layout)
                own = own or _same(copy, path)
    replacing(names, own=own, force=force)


def _same(one: Path, other: Path) -> bool:
    """Return whether a file, or every file of a folder, has the same content elsewhere."""
    if one.is_dir():
        return all(_same(each, other / each.name) for each in one.iterdir())
    return other.is_file() and filecmp.cmp(one, other, shallow=False)
