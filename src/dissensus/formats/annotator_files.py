"""Exports of tools that write one file for each annotator: a folder of them, or several paths.

A file in the folder itself is named after its annotator, `ann.json`. A file in a folder within it
is one document, and the inner folder has the annotator's name: `ann/report.ann`; so it is with
several paths, if two of their files have one name. A zip of such files is read as the folder it
would unpack to, one file at a time; nothing is ever written to disk. Python reads what is stored or
deflated, and polars unpacks Zstandard, method 93 of the zip format.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import polars as pl

from ..base.files import reason
from ..errors import DataError
from .format import Export, formats, head_of, tool_of
from .sources import DAMAGED, Source, check_blocks, check_growth, with_format

FILES = ("cvat", "coco", "brat", "conll", "doccano")  # tools that are read so
_ENDINGS = (".json", ".jsonl", ".xml", ".ann", ".conll", ".bio", ".iob", ".iob2", ".tsv", ".txt")
_MARKS = {  # endings of the files with marks; brat has texts beside them
    "cvat": (".xml",),
    "coco": (".json",),
    "brat": (".ann",),
    "conll": (".conll", ".bio", ".iob", ".iob2", ".tsv", ".txt"),
    "doccano": (".json", ".jsonl"),
}
_ZSTANDARD = 93
_LOCAL = struct.Struct("<26x2H")  # of a local header: lengths of name and extra field
_SAME = ("annotations", "instances_default", "default", "result", "data")  # names tools give

Contents = Iterator[tuple[tuple[str, ...], Path | bytes]]  # the parts of a path, and the content


class AnnotatorFile(NamedTuple):
    """What one annotator has marked in one document, or in all of them."""

    annotator: str
    document: str  # empty where the file holds all of an annotator's documents
    source: Source

    @property
    def ending(self) -> str:
        """The ending of the file's name, with its point."""
        return PurePosixPath(self.source.name).suffix.lower()

    def opened(self) -> Source | None:
        """Return the file with its format recognised; nothing for an empty one."""
        with self.source.file() as file:
            if not file.read(4096).strip():
                return None
        return with_format(self.source)


def read_files(
    paths: str | Path | Sequence[str | Path],
    format: str | None = None,  # noqa: A002
) -> tuple[str, Export] | None:
    """Return the tool and the export of a folder, a zip or several files; nothing for others."""
    if isinstance(paths, (str, Path)):
        where, path = str(paths), Path(paths)
        zipped = not path.is_dir()
        contents = _in_zip(path) if zipped else _in_folder(path)
    else:
        where, zipped = ", ".join(map(str, paths)), False
        contents = _in_list([Path(path) for path in paths])
    files = list(_annotator_files(where, contents))
    name = format or _tool_of(files)
    if name is None or (name == "doccano" and zipped):
        return None  # doccano's own zip has a reader
    if name not in FILES:
        message = f"{name} is not read file by file; {', '.join(FILES)} are"
        raise DataError(message, where=where)
    marks = _MARKS[name]
    _check_depth(where, paths, marks)
    times = Counter(
        (file.annotator, file.document, "" if file.ending in marks else file.ending)
        for file in files
    )
    for annotator, document, _ in (key for key, count in times.items() if count > 1):
        message = f"two files {document or annotator!r} of annotator {annotator!r}"
        raise DataError(message, where=where)
    read = formats[name].read_files
    return None if read is None else (name, read(files))


def _annotator_files(where: str, contents: Contents) -> Iterator[AnnotatorFile]:
    for parts, content in contents:
        path = PurePosixPath(*parts)
        if not path.name.lower().endswith(_ENDINGS) or path.name.startswith("."):
            continue
        name = str(content) if isinstance(content, Path) else f"{where}, {path}"
        document = "" if len(parts) == 1 else str(PurePosixPath(*parts[1:]).with_suffix(""))
        annotator = path.stem if len(parts) == 1 else parts[0]
        if PurePosixPath(document).name in _SAME:
            document = ""
        yield AnnotatorFile(annotator, document, Source(name, content, "csv"))


def _tool_of(files: Sequence[AnnotatorFile]) -> str | None:
    """Return the tool that wrote the files: the first that is recognised."""
    if any(file.ending == ".ann" for file in files):
        return "brat"
    for file in files:
        opened = file.opened()
        head = None if opened is None else head_of(opened)
        name = None if head is None else tool_of(head)
        if name in FILES:
            return name
    return None


def _check_depth(
    where: str, paths: str | Path | Sequence[str | Path], endings: tuple[str, ...]
) -> None:
    """Refuse a folder with files that `_in_folder` does not reach, so none is left out."""
    if not isinstance(paths, (str, Path)) or not Path(paths).is_dir():
        return
    for path in Path(paths).glob("*/*/*/*"):
        inside = path.relative_to(paths)
        hidden = any(part.startswith(".") for part in inside.parts)
        if not hidden and path.name.lower().endswith(endings) and path.is_file():
            message = f"{inside} is below two folders of an annotator; move it up"
            raise DataError(message, where=where)


def _in_list(paths: Sequence[Path]) -> Contents:
    """Yield files; if some have the same name, the folders of all are their annotators."""
    stems = [path.stem for path in paths if path.stem not in _SAME]
    unique = len(set(stems)) == len(stems)
    for path in paths:
        short = unique and path.stem not in _SAME
        yield (path.name,) if short else (path.resolve().parent.name, path.name), path


def _in_folder(folder: Path) -> Contents:
    """Yield the files of a folder and of folders in it, without links that lead out of it."""
    try:
        levels = ("*", "*/*", "*/*/*")
        for path in sorted(path for level in levels for path in folder.glob(level)):
            inside = path.resolve().is_relative_to(folder.resolve())
            if inside and path.is_file():
                yield path.relative_to(folder).parts, path
    except OSError as problem:
        raise DataError(reason(problem), where=str(folder)) from None


def _in_zip(path: Path) -> Contents:
    """Yield the files of a zip; nothing is ever written to disk."""
    try:
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                return
            packed = file.seek(0, io.SEEK_END)
            with zipfile.ZipFile(file) as archive:
                members = [member for member in archive.infolist() if not member.is_dir()]
                members.sort(key=lambda member: PurePosixPath(member.filename).parts)
                check_growth(str(path), packed, sum(member.file_size for member in members))
                for member in members:
                    parts = PurePosixPath(member.filename).parts
                    if "__MACOSX" not in parts:
                        yield parts, archive.read(member)
    except DataError:
        raise
    except NotImplementedError:  # compressed as only other tools do
        return
    except (*DAMAGED, struct.error) as problem:
        words = " ".join(str(problem).split())[:200]
        raise DataError(f"damaged zip ({words})", where=str(path)) from None


def of_one_file(
    read_all: Callable[[Sequence[AnnotatorFile]], Export],
) -> Callable[[Source], Export]:
    """Return what reads one file, whose name is the annotator's, as many are read."""

    @wraps(read_all)
    def read(source: Source) -> Export:
        return read_all([AnnotatorFile(source.stem, "", source)])

    return read


def text_of(source: Source) -> str:
    """Return the text of a file, its lines with the usual ends."""
    with source.file() as file:
        body = file.read()
    try:
        return body.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise source.fail("not UTF-8; save it again as UTF-8") from None


@contextmanager
def opened(source: Source, counts: Callable[[str], bool]) -> Iterator[Archive]:
    """Open a zip with those of its files that count, unless they unpack to too much."""
    try:
        with source.file() as file, zipfile.ZipFile(file) as archive:
            packed = file.seek(0, io.SEEK_END)
            members = {
                member.filename: member for member in archive.infolist() if counts(member.filename)
            }
            check_growth(source.name, packed, sum(member.file_size for member in members.values()))
            yield Archive(source, archive, members)
    except DataError:
        raise
    except (*DAMAGED, struct.error, pl.exceptions.PolarsError) as problem:
        raise source.fail(f"damaged zip ({problem})") from None


class Archive:
    """The files of a zip by name; of two with the same name, the later."""

    def __init__(
        self, source: Source, archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]
    ) -> None:
        self._source = source
        self._archive = archive
        self.members = members

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        member = self.members[name]
        if member.compress_type != _ZSTANDARD:
            return self._archive.read(member)
        with self._source.file() as file:
            file.seek(member.header_offset)
            file.seek(sum(_LOCAL.unpack(file.read(_LOCAL.size))), io.SEEK_CUR)
            raw = file.read(member.compress_size)
        check_blocks(self._source.name, raw)
        body = "\n".join(pl.read_lines(raw)["line"].to_list()).encode()
        if len(body) > member.file_size:
            raise self._source.fail(f"damaged zip ({name!r} is larger than it says)")
        return body
