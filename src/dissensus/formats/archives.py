"""Files in a zip, read one at a time; nothing is ever written to disk.

Python reads what is stored or deflated. Zstandard, method 93 of the zip format, is unpacked by
polars.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import polars as pl

from ..errors import DataError
from .packing import DAMAGED, check_blocks, check_growth
from .sources import Source

_ZSTANDARD = 93
_LOCAL = struct.Struct("<26x2H")  # of a local header: lengths of name and extra field


@contextmanager
def opened(source: Source, counts: Callable[[str], bool]) -> Iterator[Archive]:
    """Open a zip with those of its files that count, unless they unpack to too much."""
    try:
        with source.file() as file, zipfile.ZipFile(file) as archive:
            packed = file.seek(0, io.SEEK_END)
            members = {one.filename: one for one in archive.infolist() if counts(one.filename)}
            check_growth(source.name, packed, sum(one.file_size for one in members.values()))
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
