"""Archives, zip and tar, unpacked into a folder and nowhere else.

Names that lead outside, links and devices are refused, and so is an archive that would grow too
much. All of it is checked before the first file is written.
"""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from ..errors import DataError
from ..formats.sources import largest

MOST_BYTES = 2**32  # what an archive may hold, unpacked
MOST_FILES = 10**6


class _Member(NamedTuple):
    name: str
    size: int
    plain: bool  # a file: neither link nor device
    open: Callable[[], IO[bytes] | None]


def is_archive(path: Path) -> bool:
    """Return whether a file is a zip or tar archive."""
    return path.is_file() and (zipfile.is_zipfile(path) or tarfile.is_tarfile(path))


def names_in(path: Path) -> list[PurePosixPath]:
    """Return the files of an archive."""
    with _members(path) as members:
        return [_inside(path, member.name) for member in members]


def unpack(
    path: Path, folder: Path, reads: Callable[[PurePosixPath], bool] = lambda _: True
) -> None:
    """Unpack an archive, or the files of it that are read, into an existing folder."""
    with _members(path) as members:
        for member in members:
            name = _inside(path, member.name)
            if not reads(name):
                continue
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            source = member.open()
            if source is None:
                raise DataError(f"{path}: {member.name} cannot be read")
            with source, target.open("wb") as file:
                shutil.copyfileobj(_Limited(source, member.size), file)


def _checked(path: Path, members: list[_Member]) -> list[_Member]:
    for member in members:
        _inside(path, member.name)
        if not member.plain:
            raise DataError(f"{path}: {member.name} is a link or a device, not a file")
    size = sum(member.size for member in members)
    most = min(MOST_BYTES, largest(path.stat().st_size))
    if size > most or len(members) > MOST_FILES:
        raise DataError(
            f"{path}: {len(members)} files of {size:.3g} bytes, more than {most:.3g} bytes or "
            f"{MOST_FILES} files; unpack it yourself if you trust it"
        )
    names = [_inside(path, member.name) for member in members]
    if len(set(names)) < len(names):
        raise DataError(f"{path}: a name appears twice in it")
    return members


def _inside(path: Path, name: str) -> PurePosixPath:
    """Return a name as a path below the folder, or say that it leads elsewhere."""
    member = PurePosixPath(name.replace("\\", "/"))
    outside = member.is_absolute() or ".." in member.parts or ":" in member.parts[0]
    if outside or not member.parts or "\0" in name:
        raise DataError(f"{path}: {name!r} leads outside; nothing was unpacked")
    return member


@contextmanager
def _members(path: Path) -> Iterator[list[_Member]]:
    """Yield the files of an archive, checked; folders need no entry."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                files = [entry for entry in archive.infolist() if not entry.is_dir()]
                yield _checked(path, [_of_zip(archive, entry) for entry in files])
        else:
            with tarfile.open(path) as tar:
                yield _checked(path, [_of_tar(tar, entry) for entry in tar if not entry.isdir()])
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, RuntimeError, OSError) as problem:
        raise DataError(f"{path}: damaged archive ({problem})") from None


def _of_zip(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> _Member:
    mode = entry.external_attr >> 16
    plain = not mode or stat.S_ISREG(mode) or not stat.S_IFMT(mode)
    return _Member(entry.filename, entry.file_size, plain, lambda: archive.open(entry))


def _of_tar(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> _Member:
    return _Member(entry.name, entry.size, entry.isreg(), lambda: archive.extractfile(entry))


class _Limited:
    """A file that raises an error if it is longer than declared."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self.file, self.left = file, size

    def read(self, size: int = -1) -> bytes:
        chunk = self.file.read(size)
        self.left -= len(chunk)
        if self.left < 0:
            raise DataError("an archive holds more than it says; nothing was installed")
        return chunk
